// Which rank shall serve this prompt? Combines the index, the recently sent prompts, the load and
// the engines' speed.
//
//   world                     one per router: what all loops share
//   Steering steering(...)    one per loop
//   choice = steering.Decide(question, roster, now, ...)
//   Reservation booked(...)   from dispatch to the last byte (router/routing/reservation.h)
//
// Time is always passed in, so that replays in virtual time run through the same code.
//
// Threads  SteeringWorld: any. Steering: one per thread.
// Cost     No allocation once its vectors have grown, unless many ranks hold a part of the prompt;
// a
//          short lock in SentPrompts. Grows with the ranks that hold a part of the prompt, and with
//          the blocks of the others; with a temperature, in prefix-hash mode or without blocks with
//          all candidates. The lookup grows with the ranks in the index.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "router/fleet/engine_speed.h"
#include "router/fleet/worker.h"
#include "router/index/cache_index.h"
#include "router/routing/approximate_index.h"
#include "router/routing/candidate_search.h"
#include "router/routing/decision.h"
#include "router/routing/decision_ring.h"
#include "router/routing/owner_book.h"
#include "router/routing/roster.h"
#include "router/routing/saturation.h"
#include "router/routing/sent_prompts.h"

namespace fathom {

struct SteeringOptions {
  RouterMode mode = RouterMode::kKv;
  bool events = true;  // false: depths are estimated from the router's decisions
  Weights weights;
  Duration belief_outlives = std::chrono::seconds(1);
  Duration approximate_ttl = std::chrono::seconds(120);
  size_t approximate_bytes = size_t{1} << 30;
  bool by_text = false;  // prompts without tokens: their texts are remembered
  Duration text_ttl = std::chrono::seconds(120);
  size_t text_bytes = size_t{128} << 20;
  size_t prefix_tokens = 1024;
  double prefix_bound = 1.25;
  double queue_threshold = 2;
  size_t decisions_kept = 1024;
  bool several = false;  // replicas of this router choose at the same time
};

// How deep each rank's cache reaches into a prompt. One per thread.
class DepthSource {
 public:
  virtual ~DepthSource() = default;
  // Valid until the next call.
  virtual std::span<const CacheReader::Found> Find(std::span<const TokenId> tokens, uint64_t seed,
                                                   const KnownPrefix& known) = 0;
  // The keys of the prompt of the last Find().
  virtual void Keep(std::span<const TokenId> tokens, uint64_t seed, PrefixKeys& keys) = 0;
  // Of that prompt: tokens that were computed once, beyond what any rank holds; and its keys from a
  // block on.
  virtual CacheReader::Lost FindLost(std::span<const TokenId> /*tokens*/, uint64_t /*seed*/,
                                     const KnownPrefix& /*known*/) {
    return {};
  }
  virtual std::span<const uint64_t> KeysOf(std::span<const TokenId> /*tokens*/, uint64_t /*seed*/,
                                           BlockShape /*shape*/, size_t /*from*/) {
    return {};
  }
  // All blocks in the index.
  virtual size_t blocks() const = 0;
};

struct SteeringWorld {
  // `secret` prevents clients from choosing prompts that collide.
  SteeringWorld(const SteeringOptions& o, uint64_t secret);

  const SteeringOptions options;
  const uint64_t secret;
  SentPrompts sent;
  EngineSpeed speed;  // of the whole fleet
  DecisionRing ring;
  std::optional<ApproximateIndex> approximate;  // if options.events is false
  std::optional<ApproximateIndex> texts;        // if options.by_text
};

// Depths from an index; `index` may be null, and must outlive the result.
std::unique_ptr<DepthSource> DepthsOf(const CacheIndex* index);

struct RouteQuestion {
  std::span<const TokenId> tokens;  // empty: unknown
  uint64_t seed = 0;                // of their namespace
  bool by_text = false;             // they are values of the prompt's text
  KnownPrefix known;                // keys of an earlier prompt with the same beginning
  uint32_t prompt_tokens = 0;       // an estimate if the tokens are unknown
  PromptSpace space = PromptSpace::kPlain;
  PromptKind kind = PromptKind::kChat;
  size_t queued = 0;  // requests waiting in the router for a rank with room
  // The rank of the last request of the same session, by a hint of the client.
  struct Hint {
    HintKind kind = HintKind::kUser;
    HintedRank last;
    bool events_late = false;  // that request's events may still be on their way
  };
  std::optional<Hint> hint;
  Weights weights;
  // The beginning of a prompt that is unknown, if a rank is believed to have it.
  struct Continued {
    RankLabel rank;
    uint32_t tokens = 0;
  };
  Continued continued = {};
};

class Steering final : private CandidateSearch::Views {
 public:
  Steering(SteeringWorld& world, std::unique_ptr<DepthSource> depths, uint64_t seed)
      : world_(world), depths_(std::move(depths)), random_(seed) {
    if (world.texts) texts_.emplace(world.texts->index());
  }

  enum class Patience : uint8_t { kMayWait, kMustDecide };
  struct Choice {
    Decision* decision = nullptr;  // valid until the next call; null: no rank has room, wait
    Place place;
  };
  // Among the ranks of the roster that are not excluded in this turn; requires one.
  Choice Decide(const RouteQuestion& question, Roster& roster, TimePoint now, Patience patience);
  // Looks at all of these places; requires one.
  Choice Decide(const RouteQuestion& question, std::span<const Place> places, TimePoint now,
                Patience patience);

  // Duration of the parts of the last decision.
  struct Stages {
    Duration hash{};    // the prompt's marks
    Duration lookup{};  // the index, including its keys, and the sent prompts
    Duration choose{};
  };
  const Stages& stages() const { return stages_; }

  // About the prompt of the last decision: all its keys;
  PrefixKeys Keys(const RouteQuestion& question);
  // the keys of its blocks of this shape, from a block on;
  std::span<const uint64_t> KeysOf(const RouteQuestion& question, BlockShape shape, size_t from) {
    return depths_->KeysOf(question.tokens, question.seed, shape, from);
  }
  // tokens that were computed once, beyond what any rank holds now;
  const CacheReader::Lost& lost() const { return lost_; }
  // ranks that hold a part of it and were not among the places.
  struct Outsider {
    RankLabel rank;
    uint32_t tokens = 0;
  };
  std::span<const Outsider> outsiders() const { return outsiders_; }
  // Its marks.
  std::span<const PromptMark> marks() const { return marks_; }
  SteeringWorld& world() { return world_; }

  // Whom lost blocks belonged to.
  OwnerBook& owners() { return owners_; }

 private:
  RankView Look(uint32_t position) override;
  RankView Glance(uint32_t position) override;
  Room RoomOf(const RankView& rank) override;

  void Begin(const RouteQuestion& question, Roster& roster, TimePoint now);
  void ListAll();
  uint64_t CountWaiting();
  uint64_t CountWaitingIn(Roster::Part& part);
  bool IsCalm(const Roster::Part& part) const;
  RankView& Listed(uint32_t position);
  void FindDepths(const RouteQuestion& question);
  void FindTexts(const RouteQuestion& question);
  void FindSent(TimePoint now);
  void TakeHint(const RouteQuestion::Hint& hint);
  bool HoldsSession(const RouteQuestion::Hint& hint, uint32_t position) const;
  bool LeaveOutFull();

  SteeringWorld& world_;
  const std::unique_ptr<DepthSource> depths_;
  std::optional<CacheReader> texts_;
  Random random_;
  Decision decision_;
  std::vector<PromptMark> marks_;
  std::vector<SentPrompts::Found> sent_;
  std::vector<Outsider> outsiders_;
  CacheReader::Lost lost_;
  OwnerBook owners_;
  CandidateSearch search_;
  Roster given_;  // the places of a call without a roster
  Stages stages_;
  // Of the decision that is being made.
  Roster* roster_ = nullptr;
  TimePoint now_{};
  double unit_ = 0;
  PromptSpace space_ = PromptSpace::kPlain;
  PromptKind kind_ = PromptKind::kChat;
  bool may_wait_ = false;
};

}  // namespace fathom
