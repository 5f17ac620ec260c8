// In which state of trust is this rank, why, and what is its word worth?
//
// A pure state machine: told what is reported, what events say, which requests were served and what
// became of predictions, it decides. It knows no locks, no sockets and no log.
//
//   agreed       what the agreement on block sizes and the health checks say comes first
//   then doubt   the deepest cause that was found, one at a time: prefix_caching_off, no_events,
//                tokens_differ, unsupported_groups, event_gap, event_lag, prediction_drift, churn.
//                Of two that hold, the deeper one explains the other.
//
// Predictions can only take trust away: many engines do not say what they found.
//
// Over-prediction has honest reasons, which are taken off before it counts: blocks that left
// between the choice and the answer, a rank that was emptied meanwhile, preempted requests, which
// report nothing. To hear of these a served request waits for kSettling before it is judged.
//
// Threads  One.
// Memory   At most kMostUnsettled requests, and what the watches keep.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "fleet/churn_watch.h"
#include "fleet/gap_watch.h"
#include "fleet/lag_watch.h"
#include "fleet/prediction_record.h"
#include "fleet/reuse_watch.h"
#include "fleet/served_request.h"
#include "fleet/silence_watch.h"
#include "fleet/token_agreement.h"
#include "fleet/trust.h"
#include "fleet/trust_evidence.h"
#include "fleet/waste_account.h"

namespace fathom {

struct TrustRules {
  Duration no_events_after = std::chrono::seconds(5);
  Duration lag_limit = std::chrono::seconds(2);
  // How long a served request waits for what may excuse it, at least kSettling.
  Duration settling = std::chrono::seconds(3);
};

// What is known of a rank from outside its requests. Counts only grow.
struct RankFacts {
  Trust agreed;  // by block sizes and health
  std::optional<bool> prefix_caching;
  uint64_t preemptions = 0;
  // Of its event stream.
  uint64_t batches = 0;
  uint64_t stored = 0;
  uint64_t held = 0;  // blocks, now
  uint64_t lost = 0;  // batches
  uint64_t gaps = 0;
  uint64_t repaired = 0;
  uint64_t unknown_groups = 0;
  PulseReading pulse;
};

struct Judgement {
  Trust trust;
  Evidence evidence;
  // What its word is worth, for each kind of prompt: 1 in full, 0 not at all.
  std::array<double, kPromptSpaces> credit{1, 1, 1};
  uint64_t cost = 0;  // prompt tokens that were prefilled again because of it
};

class RankTrust {
 public:
  static constexpr Duration kSettling = std::chrono::seconds(3);
  static constexpr size_t kMostUnsettled = 1024;

  void Served(const ServedRequest& request, TimePoint now);
  // Tokens that had to be prefilled again, and this rank is to blame.
  void Wasted(uint64_t tokens, TimePoint now) { waste_.Add(tokens, now); }
  // A prompt came back of which the rank had held so many tokens.
  void Returned(uint64_t evicted, uint64_t reused, TimePoint now) {
    churn_.Returned(evicted, reused, now);
  }
  TokenAgreement& tokens() { return tokens_; }
  // An event agreed with a request, so long after its first byte.
  void Lagged(Duration lag) { lag_.AfterFirstByte(lag); }
  // A live batch: our wall clock less its timestamp. Returns how much of it is lag.
  Duration Stamped(Duration offset, TimePoint now) { return lag_.ByTimestamp(offset, now); }

  // Now and then.
  Judgement Judge(const TrustRules& rules, const RankFacts& facts, TimePoint now);

 private:
  struct Unsettled {
    ServedRequest request;
    TimePoint answered;
  };
  struct Finding {
    TrustCause cause = TrustCause::kNone;
    Evidence evidence;
  };

  void Hear(const RankFacts& facts, TimePoint now);
  void Settle(const TrustRules& rules, const RankFacts& facts, TimePoint now);
  void Weigh(const ServedRequest& request, const RankFacts& facts);
  Finding Find(const TrustRules& rules, const RankFacts& facts, TimePoint now);
  void SetCredit(Judgement& judgement) const;

  SilenceWatch silence_;
  ReuseWatch reuse_;
  TokenAgreement tokens_;
  GapWatch gap_;
  LagWatch lag_;
  PredictionRecord predictions_;
  ChurnWatch churn_;
  WasteAccount waste_;
  std::deque<Unsettled> unsettled_;
  uint64_t preemptions_ = 0;
  std::optional<TimePoint> preempted_;  // when that was last seen to grow
  uint64_t lives_ = 0;
  Trust trust_;
};

}  // namespace fathom
