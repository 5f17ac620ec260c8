// In which trust state is this rank, why, and how much credit do its events get?
//
// A pure state machine. Input: reports, events, served requests and the outcomes of predictions. It
// has no locks, sockets or log.
//
//   agreed       the block-size agreement and the health checks come first
//   then doubt   the deepest cause found, one at a time: prefix_caching_off, no_events,
//                tokens_differ, unsupported_groups, event_gap, event_lag, prediction_drift, churn.
//                Of two that hold, the deeper one explains the other.
//
// Predictions can only reduce trust: many engines do not report cached tokens.
//
// Over-prediction has benign causes, which are subtracted before it counts: blocks that were
// evicted between the routing decision and the answer, a rank that was cleared in between, and
// preempted requests, which report no cached tokens. So that these become known first, a served
// request waits for kSettling before it is judged.
//
// Threads  One.
// Memory   At most kMostUnsettled requests, and the state of the watches.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "router/fleet/churn_watch.h"
#include "router/fleet/gap_watch.h"
#include "router/fleet/lag_watch.h"
#include "router/fleet/prediction_record.h"
#include "router/fleet/reuse_watch.h"
#include "router/fleet/served_request.h"
#include "router/fleet/silence_watch.h"
#include "router/fleet/token_agreement.h"
#include "router/fleet/trust.h"
#include "router/fleet/trust_evidence.h"
#include "router/fleet/waste_account.h"

namespace fathom {

struct TrustRules {
  Duration no_events_after = std::chrono::seconds(5);
  Duration lag_limit = std::chrono::seconds(2);
  // How long a served request waits for evidence of a benign cause; at least kSettling.
  Duration settling = std::chrono::seconds(3);
};

// Facts about a rank from sources other than its requests. Counts only grow.
struct RankFacts {
  Trust agreed;  // by block sizes and health
  std::optional<bool> prefix_caching;
  uint64_t preemptions = 0;
  bool publisher_off = false;  // the engine reports that it publishes no events
  // Of its event stream.
  uint64_t batches = 0;
  uint64_t stored = 0;   // blocks, without replays
  uint64_t removed = 0;  // likewise
  uint64_t held = 0;     // blocks, now
  uint64_t lost = 0;     // batches
  uint64_t gaps = 0;
  uint64_t repaired = 0;
  uint64_t unknown_groups = 0;
  PulseReading pulse;
};

struct Judgement {
  Trust trust;
  Evidence evidence;
  // Credit of its events for each space of prompts: 1 full, 0 none.
  std::array<double, kPromptSpaces> credit{1, 1, 1};
  // False: the tokens of such prompts differ from the router's, and the events are no help to them.
  std::array<bool, kPromptKinds> same_tokens{true, true, true, true, true, true, true, true, true};
  uint64_t cost = 0;  // prompt tokens prefilled again because of this rank
};

class RankTrust {
 public:
  static constexpr Duration kSettling = std::chrono::seconds(3);
  static constexpr size_t kMostUnsettled = 1024;

  void Served(const ServedRequest& request, TimePoint now);
  // Tokens that had to be prefilled again because of this rank.
  void Wasted(uint64_t tokens, TimePoint now) { waste_.Add(tokens, now); }
  // A prompt came back of which the rank has evicted `evicted` tokens and still holds `reused`.
  void Returned(uint64_t evicted, uint64_t reused, TimePoint now) {
    churn_.Returned(evicted, reused, now);
  }
  TokenAgreement& tokens() { return tokens_; }
  // An event matched a request, `lag` after its first byte.
  void Lagged(Duration lag) { lag_.AfterFirstByte(lag); }
  // A live batch: the router's wall clock minus its timestamp. Returns the part that is lag.
  Duration Stamped(Duration offset, TimePoint now) { return lag_.ByTimestamp(offset, now); }

  // Call it periodically.
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
  std::optional<TimePoint> preempted_;  // when the count last grew
  uint64_t lives_ = 0;
  std::optional<Trust> trust_;  // of the last judgement
};

}  // namespace fathom
