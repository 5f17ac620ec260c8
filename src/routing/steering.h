// Which rank shall serve this prompt? Puts together what is known: the index, what was just sent,
// the load, the engines' speed.
//
//   world                     one per router: what all loops share
//   Steering steering(...)    one per loop
//   choice = steering.Decide(question, places, now, ...)
//   Reservation booked(...)   from dispatch to the last byte (routing/reservation.h)
//
// Time is always passed in, so that replays in virtual time run through the same code.
//
// Threads  SteeringWorld: any. Steering: one each.
// Cost     No allocation once its vectors have grown; the short locks of the load and of the
//          prompts that were just sent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "fleet/worker.h"
#include "index/cache_index.h"
#include "routing/approximate_index.h"
#include "routing/decision.h"
#include "routing/decision_ring.h"
#include "routing/saturation.h"
#include "routing/sent_prompts.h"

namespace fathom {

struct SteeringOptions {
  RouterMode mode = RouterMode::kKv;
  bool events = true;  // false: depths are guessed from our own decisions
  Weights weights;
  Duration belief_outlives = std::chrono::seconds(1);
  Duration approximate_ttl = std::chrono::seconds(120);
  size_t approximate_bytes = size_t{1} << 30;
  size_t prefix_tokens = 1024;
  double prefix_bound = 1.25;
  double queue_threshold = 2;
  size_t decisions_kept = 1024;
};

// How deep each rank's cache reaches into a prompt. One per thread.
class DepthSource {
 public:
  virtual ~DepthSource() = default;
  // Valid until the next call.
  virtual std::span<const CacheReader::Found> Find(std::span<const TokenId> tokens, uint64_t seed,
                                                   const KnownPrefix& known) = 0;
  // The keys of the prompt that was asked about last.
  virtual void Keep(std::span<const TokenId> tokens, uint64_t seed, PrefixKeys& keys) = 0;
  // What of it was computed once, beyond what anybody holds; and its keys from a block on.
  virtual CacheReader::Lost FindLost(std::span<const TokenId> /*tokens*/, uint64_t /*seed*/,
                                     const KnownPrefix& /*known*/) {
    return {};
  }
  virtual std::span<const uint64_t> KeysOf(std::span<const TokenId> /*tokens*/, uint64_t /*seed*/,
                                           BlockShape /*shape*/, size_t /*from*/) {
    return {};
  }
  // Blocks that are known in all.
  virtual size_t blocks() const = 0;
};

struct SteeringWorld {
  // `secret` keeps outsiders from choosing which prompts collide.
  SteeringWorld(const SteeringOptions& o, uint64_t secret);

  const SteeringOptions options;
  const uint64_t secret;
  SentPrompts sent;
  EngineSpeed speed;  // of the whole fleet
  DecisionRing ring;
  std::optional<ApproximateIndex> approximate;  // if depths are guessed
};

// Of what an index knows; `index` may be null. Outlives neither.
std::unique_ptr<DepthSource> DepthsOf(const CacheIndex* index);

// A place where the request could go.
struct Place {
  Worker* worker = nullptr;
  Rank* rank = nullptr;

  RankLabel label() const { return {worker->id().value(), rank->number}; }
};

struct RouteQuestion {
  std::span<const TokenId> tokens;  // empty: not known
  uint64_t seed = 0;                // of their namespace
  KnownPrefix known;                // what an earlier prompt that begins alike has left
  uint32_t prompt_tokens = 0;       // an estimate where the tokens are not known
  PromptSpace space = PromptSpace::kPlain;
  size_t queued = 0;  // requests that wait in the router for a rank with room
  Weights weights;
};

class Steering {
 public:
  Steering(SteeringWorld& world, std::unique_ptr<DepthSource> depths, uint64_t seed)
      : world_(world), depths_(std::move(depths)), random_(seed) {}

  enum class Patience : uint8_t { kMayWait, kMustChoose };
  struct Choice {
    Decision* decision = nullptr;  // valid until the next call; null: no rank has room, wait
    Place place;
  };
  // There must be one place at least.
  Choice Decide(const RouteQuestion& question, std::span<const Place> places, TimePoint now,
                Patience patience);

  // How long the parts of the last decision took.
  struct Stages {
    Duration hash{};    // the prompt's marks
    Duration lookup{};  // the index, which makes its keys as deep as it looks, and what was sent
    Duration choose{};
  };
  const Stages& stages() const { return stages_; }

  // Of the prompt that was decided about last:
  // what can be computed of it;
  PrefixKeys Keys(const RouteQuestion& question);
  // the keys of its blocks of this shape, from a block on;
  std::span<const uint64_t> KeysOf(const RouteQuestion& question, BlockShape shape, size_t from) {
    return depths_->KeysOf(question.tokens, question.seed, shape, from);
  }
  // what of it was computed once, beyond what anybody holds now;
  const CacheReader::Lost& lost() const { return lost_; }
  // who holds some of it, and was not among the places.
  struct Outsider {
    RankLabel rank;
    uint32_t tokens = 0;
  };
  std::span<const Outsider> outsiders() const { return outsiders_; }
  // Its marks.
  std::span<const PromptMark> marks() const { return marks_; }
  SteeringWorld& world() { return world_; }

 private:
  void LookAt(std::span<const Place> places, const RouteQuestion& question, TimePoint now);
  void FindDepths(const RouteQuestion& question);
  void FindSent(TimePoint now);
  bool LeaveOutFull(std::span<const Place> places);
  RankView* ViewOf(const RankLabel& rank);

  SteeringWorld& world_;
  const std::unique_ptr<DepthSource> depths_;
  Random random_;
  Decision decision_;
  std::vector<PromptMark> marks_;
  std::vector<SentPrompts::Found> sent_;
  std::vector<Outsider> outsiders_;
  CacheReader::Lost lost_;
  std::vector<size_t> positions_;  // of the ranks that are priced, among the places
  size_t next_view_ = 0;           // where ViewOf() begins to look
  Stages stages_;
};

}  // namespace fathom
