// How much of this prompt was known somewhere and prefilled all the same, and why?
//
// Each cause is given a depth: how many leading tokens would have been saved but for it. What lies
// above what was used is shared out from the shallowest cause to the deepest, in the order of the
// enum, so that the parts add up to what was wasted. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>

namespace fathom {

enum class WasteCause : uint8_t {
  kMispredicted,  // events said that the chosen rank has it; the engine did not find it
  kLoad,          // a rank that has it was busier than it is worth
  kFull,          // a rank that has it had no room
  kWish,          // the request itself asked for another rank
  kDoubted,       // the rank that has it is not trusted
  kExcluded,      // the rank that has it gets no requests
  kLag,           // it was sent there, and no event has said so yet
  kGone,          // the rank that had it was restarted, emptied or lost
  kForgotten,     // the index had no room to remember it
  kEvicted,       // the engine made room for others
};
constexpr size_t kWasteCauses = 10;
// One spelling everywhere.
std::string_view Name(WasteCause cause);

struct Waste {
  std::array<uint32_t, kWasteCauses> tokens{};

  uint32_t& operator[](WasteCause cause) { return tokens[static_cast<size_t>(cause)]; }
  uint32_t operator[](WasteCause cause) const { return tokens[static_cast<size_t>(cause)]; }
  uint32_t total() const { return std::accumulate(tokens.begin(), tokens.end(), 0u); }
};

// Leading tokens of a prompt.
struct KnownPrefixes {
  uint32_t used = 0;  // on the chosen rank, by whatever is known of it
  std::array<uint32_t, kWasteCauses> by_cause{};

  void Note(WasteCause cause, uint32_t tokens) {
    uint32_t& known = by_cause[static_cast<size_t>(cause)];
    known = std::max(known, tokens);
  }
};

// `cached` is what the engine says that it found, if it does.
Waste WasteOf(const KnownPrefixes& known, std::optional<uint32_t> cached);

}  // namespace fathom
