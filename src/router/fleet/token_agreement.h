// Does this rank compute the same tokens that the router looks up?
//
// A request with new blocks makes the engine store them, and the event contains their tokens. Some
// requests are noted when they are sent, and stored events are compared with them.
//
//   agrees   an event continues with the request's tokens where its known part ends; or it begins
//            earlier and contains them later on. One such event clears its kind of prompt.
//   differs  kPatience after the first byte, events with known parents have arrived and none
//            matched. A request that was alone on its rank has a high weight; one beside others,
//            which may have caused these events, a low weight.
//   nothing  no event arrived (the engine had all blocks), or one with an unknown parent (the
//            router knows too little of the rank to decide).
//
// Each kind of prompt is judged by itself: an engine may prepare chats with tools otherwise than
// the router does, and all other chats alike.
//
// Before the first request, probe prompts may have shown the same (router/fleet/token_parity.h): a
// kind whose probes differ is doubted at once, until an event or a later probe agrees.
//
// The time from the first byte to an event that agrees is the lag of the stream.
//
// Threads  One.
// Memory   At most kMost requests with kTokens tokens each.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "router/fleet/served_request.h"
#include "router/fleet/token_parity.h"
#include "router/fleet/trust_evidence.h"
#include "text/tokens/token.h"

namespace fathom {

// A request that was just sent to a rank and should make it store blocks.
struct ExpectedBlocks {
  uint64_t id = 0;
  uint32_t from = 0;            // tokens of the prompt that the rank is known to hold
  uint64_t before = 0;          // key of the block that ends there; 0: start of the prompt
  std::vector<TokenId> tokens;  // of the prompt, from there on
  std::vector<uint64_t> keys;   // of the blocks that these tokens fill
  uint32_t block_size = 0;
  std::string model;
  PromptKind kind = PromptKind::kChat;
};

// The blocks of a stored event.
struct StoredTokens {
  enum class Place : uint8_t { kBeginning, kKnown, kUnknown };
  Place place = Place::kBeginning;
  uint64_t before = 0;  // key of the parent block, if known
  std::span<const TokenId> tokens;
};

// The first place where a prompt has other tokens at the engine; nullopt if there is none.
std::optional<TokenDifference> FirstDifference(std::span<const TokenId> ours,
                                               std::span<const TokenId> theirs);

class TokenAgreement {
 public:
  static constexpr size_t kMost = 16;
  static constexpr size_t kTokens = 512;
  static constexpr Duration kPatience = std::chrono::seconds(10);  // after the first byte
  static constexpr Duration kRemembered = std::chrono::seconds(60);
  // The weight of a differing request that was alone, and the sum that causes doubt.
  static constexpr uint32_t kAlone = 16;
  static constexpr uint32_t kDoubt = 64;

  // Whether there is room for one more.
  bool MayExpect(TimePoint now) const;
  // Call it for every request that goes to the rank; `busy` if others are in flight there.
  void Sent(bool busy);
  // Call it right after Sent() for the same request.
  void Expect(ExpectedBlocks expected, TimePoint now);
  void FirstByte(uint64_t id, TimePoint now);
  // The request failed.
  void Withdraw(uint64_t id);
  bool expects() const { return !noted_.empty(); }

  // Returns the lag if the event agrees with a request that has its first byte.
  std::optional<Duration> Stored(const StoredTokens& stored, TimePoint now);
  // What the probe prompts showed. Of a later report, only what has changed counts: events may have
  // shown more in between.
  void Probed(std::shared_ptr<const ParityReport> report);
  // Only what the probe prompts showed remains.
  void Reset();

  // Of the kind that differs most.
  std::optional<TokenDifference> Look(TimePoint now);
  // As of the last Look(). While no kind is known to agree, one that differs stands for all. What
  // events show about one kind is not limited by probes of another that agree: then the engine
  // computes with other tokens than it says.
  bool Differs(PromptKind kind) const;

 private:
  struct Record {
    uint32_t weight = 0;
    bool agrees = false;  // an event did, and since then too few differed for a doubt
    bool probe_agrees = false;
    TokenDifference difference;
  };

  struct Noted {
    ExpectedBlocks expected;
    TimePoint sent{};
    std::optional<TimePoint> first_byte;
    std::optional<TimePoint> agreed;
    bool alone = true;
    bool known_events = false;    // events with a known parent arrived
    bool unknown_events = false;  // events with an unknown parent arrived
    bool judged = false;
  };

  enum class Verdict : uint8_t { kOther, kAgrees, kContinues };

  Verdict Compare(const Noted& noted, const StoredTokens& stored);
  void Locate(const Noted& noted, std::span<const TokenId> ours, uint32_t position,
              std::span<const TokenId> theirs);
  void Judge(Noted& noted, TimePoint now);
  Record& RecordOf(const Noted& noted) {
    return records_[static_cast<size_t>(noted.expected.kind)];
  }
  // Whether there is a kind whose agreement limits what this one shows to its own kind.
  bool OthersAgree(const Record& record) const;
  void TakeProbe(size_t kind);

  std::vector<Noted> noted_;  // oldest first
  bool next_alone_ = true;
  std::array<Record, kPromptKinds> records_;
  std::shared_ptr<const ParityReport> probed_;  // null: no probe prompts were compared
};

}  // namespace fathom
