// How much of this prompt was cached somewhere and prefilled anyway, and why?
//
// Each cause has a depth: how many leading tokens would have been saved without it. The tokens
// above those that were used (as the engine reports, else KnownPrefixes::used) are assigned to the
// causes in the order of the enum. Each cause gets the part that is deeper than all causes before
// it, so that the parts sum to the total waste. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>

namespace fathom {

enum class WasteCause : uint8_t {
  kMispredicted,  // cached on the chosen rank according to events; the engine did not find it
  kLoad,          // a rank that has it was too busy to be the cheapest
  kFull,          // a rank that has it had no room
  kOverride,      // the request itself required another rank
  kDoubted,       // the rank that has it is not trusted
  kExcluded,      // the rank that has it gets no requests
  kLag,           // it was sent to a rank, and no event has confirmed it yet
  kGone,          // the rank that had it was restarted, cleared or removed
  kForgotten,     // the index had no memory for it
  kEvicted,       // the engine evicted it
  kUnread,        // the prompt was not read: what another rank had of it is an estimate
};
constexpr size_t kWasteCauses = 11;
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
  uint32_t used = 0;  // on the chosen rank, confirmed or believed
  std::array<uint32_t, kWasteCauses> by_cause{};

  void Note(WasteCause cause, uint32_t tokens) {
    uint32_t& known = by_cause[static_cast<size_t>(cause)];
    known = std::max(known, tokens);
  }
};

// `cached` is the engine's report, if any.
Waste WasteOf(const KnownPrefixes& known, std::optional<uint32_t> cached);

}  // namespace fathom
