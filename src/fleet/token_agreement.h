// Does this rank compute the tokens that we look up?
//
// A request with news makes the engine store blocks, and the event names their tokens. Some
// requests are noted when they are sent; stored events are held against them.
//
//   agrees   an event continues where the request's known part ends, with its tokens; or it begins
//            before, and has them further on. One such event clears the rank.
//   differs  the request was answered a while ago; events came, each from a place in the cache that
//            is known, and none was ours. Alone on its rank, such a request weighs a lot; beside
//            others, whose events these may be, little.
//   nothing  no event came (the engine had it all), or one from an unknown place (we know too
//            little of the rank to tell).
//
// What an event that agrees took since the first byte is the lag of the stream.
//
// Threads  One.
// Memory   At most kMost requests with kTokens tokens each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fleet/trust_evidence.h"
#include "tokens/token.h"

namespace fathom {

// A request that was just sent to a rank, and should make it store blocks.
struct ExpectedBlocks {
  uint64_t id = 0;
  uint32_t from = 0;            // tokens of the prompt that the rank is known to hold
  uint64_t before = 0;          // key of the block that ends there; 0: the prompt begins there
  std::vector<TokenId> tokens;  // of the prompt, from there on
  std::vector<uint64_t> keys;   // of the blocks that these tokens fill
  uint32_t block_size = 0;
  std::string model;
};

// Blocks that a stored event tells of.
struct StoredTokens {
  enum class Place : uint8_t { kBeginning, kKnown, kUnknown };
  Place place = Place::kBeginning;
  uint64_t before = 0;  // key of the block before, where it is known
  std::span<const TokenId> tokens;
};

class TokenAgreement {
 public:
  static constexpr size_t kMost = 16;
  static constexpr size_t kTokens = 512;
  static constexpr Duration kPatience = std::chrono::seconds(10);  // after the first byte
  static constexpr Duration kRemembered = std::chrono::seconds(60);
  // What a request that differs weighs, and how much is too much.
  static constexpr uint32_t kAlone = 16;
  static constexpr uint32_t kDoubt = 64;

  // Whether there is room for one more.
  bool MayExpect(TimePoint now) const;
  // Every request that goes to the rank; `busy` if others are there.
  void Sent(bool busy);
  // It must have been Sent() just before.
  void Expect(ExpectedBlocks expected, TimePoint now);
  void FirstByte(uint64_t id, TimePoint now);
  // It came to nothing.
  void Withdraw(uint64_t id);
  bool expects() const { return !noted_.empty(); }

  // Returns the lag where the event agrees with a request that has its first byte.
  std::optional<Duration> Stored(const StoredTokens& stored, TimePoint now);
  void Reset();

  std::optional<TokenDifference> Look(TimePoint now);

 private:
  struct Noted {
    ExpectedBlocks expected;
    TimePoint sent{};
    std::optional<TimePoint> first_byte;
    std::optional<TimePoint> agreed;
    bool alone = true;
    bool known_events = false;    // events came, from known places
    bool unknown_events = false;  // or from others
    bool judged = false;
  };

  enum class Verdict : uint8_t { kOther, kAgrees, kContinues };

  Verdict Compare(const Noted& noted, const StoredTokens& stored);
  void Locate(const Noted& noted, std::span<const TokenId> ours, uint32_t position,
              std::span<const TokenId> theirs);
  void Judge(Noted& noted, TimePoint now);

  std::vector<Noted> noted_;  // oldest first
  bool next_alone_ = true;
  uint32_t weight_ = 0;
  TokenDifference difference_;
};

}  // namespace fathom
