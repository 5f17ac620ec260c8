#include "routing/steering.h"

#include <algorithm>
#include <utility>

#include "routing/prefix_hash.h"

namespace fathom {
namespace {

class IndexDepths final : public DepthSource {
 public:
  explicit IndexDepths(const CacheIndex& index) : index_(index), reader_(index) {}

  std::span<const CacheReader::Found> Find(std::span<const TokenId> tokens, uint64_t seed,
                                           const KnownPrefix& known) override {
    return reader_.Match(tokens, seed, known);
  }
  void Keep(std::span<const TokenId> tokens, uint64_t seed, PrefixKeys& keys) override {
    reader_.Keep(tokens, seed, keys);
  }
  CacheReader::Lost FindLost(std::span<const TokenId> tokens, uint64_t seed,
                             const KnownPrefix& known) override {
    return reader_.FindLost(tokens, seed, known);
  }
  std::span<const uint64_t> KeysOf(std::span<const TokenId> tokens, uint64_t seed, BlockShape shape,
                                   size_t from) override {
    return reader_.KeysOf(tokens, seed, shape, from);
  }
  size_t blocks() const override { return index_.held(); }

 private:
  const CacheIndex& index_;
  CacheReader reader_;
};

class NoDepths final : public DepthSource {
 public:
  std::span<const CacheReader::Found> Find(std::span<const TokenId>, uint64_t,
                                           const KnownPrefix&) override {
    return {};
  }
  void Keep(std::span<const TokenId>, uint64_t, PrefixKeys&) override {}
  size_t blocks() const override { return 0; }
};

// More ranks than these that hold a prompt and cannot be chosen tell nothing new.
constexpr size_t kMostOutsiders = 64;

class Stopwatch {
 public:
  Duration Lap() {
    const auto now = std::chrono::steady_clock::now();
    return now - std::exchange(last_, now);
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

RankLimits LimitsOf(const WorkerReport& report) {
  return {report.batch_tokens(), report.kv_tokens(), report.max_running()};
}

}  // namespace

std::unique_ptr<DepthSource> DepthsOf(const CacheIndex* index) {
  if (index == nullptr) return std::make_unique<NoDepths>();
  return std::make_unique<IndexDepths>(*index);
}

SteeringWorld::SteeringWorld(const SteeringOptions& o, uint64_t s)
    : options(o), secret(s), sent(o.belief_outlives), ring(o.decisions_kept) {
  if (o.mode == RouterMode::kKv && !o.events) {
    approximate.emplace(o.approximate_ttl, o.approximate_bytes, s);
  }
}

// Who is found comes in nearly the order of the places, so the search begins after the last hit.
RankView* Steering::ViewOf(const RankLabel& rank) {
  const size_t count = decision_.ranks.size();
  for (size_t i = 0; i < count; ++i) {
    RankView& view = decision_.ranks[(next_view_ + i) % count];
    if (view.rank != rank) continue;
    next_view_ = (next_view_ + i + 1) % count;
    return &view;
  }
  return nullptr;
}

void Steering::LookAt(std::span<const Place> places, const RouteQuestion& question, TimePoint now) {
  const double unit = world_.speed.unit();
  size_t waiting = question.queued;
  decision_.ranks.clear();
  positions_.clear();
  for (size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    RankView view{.rank = place.label()};
    view.slowness = place.rank->speed.SlownessBeside(world_.speed);
    view.load = place.rank->load.Look(now, unit * view.slowness);
    const bool caches = place.worker->report.prefix_caching().value_or(true);
    const bool usable = caches && !place.rank->doubted.load(std::memory_order_relaxed);
    view.trust = usable ? place.rank->witness.Credit(question.space) : 0;
    view.capacity = place.worker->report.kv_tokens();
    waiting += view.load.waiting;
    decision_.ranks.push_back(view);
    positions_.push_back(i);
  }
  next_view_ = 0;
  decision_.prompt.pressure = static_cast<double>(waiting) / static_cast<double>(places.size());
}

void Steering::FindDepths(const RouteQuestion& question) {
  for (const CacheReader::Found& found :
       depths_->Find(question.tokens, question.seed, question.known)) {
    RankView* const view = ViewOf(found.rank);
    if (view == nullptr) {
      const auto tokens = static_cast<uint32_t>(found.tokens[0]);
      if (tokens > 0 && outsiders_.size() < kMostOutsiders)
        outsiders_.push_back({found.rank, tokens});
      continue;
    }
    view->block_size = found.block_size;
    view->pairs = found.pairs;
    view->held = found.held;
    // Guesses steer like beliefs: only events confirm.
    if (!decision_.events) view->believed = static_cast<uint32_t>(found.tokens[0]);
    for (size_t tier = 0; tier < kTiers && decision_.events; ++tier) {
      // A rank that restarts with other blocks can be there twice for a moment.
      view->cached[tier] = std::max(view->cached[tier], static_cast<uint32_t>(found.tokens[tier]));
    }
  }
}

void Steering::FindSent(TimePoint now) {
  world_.sent.Find(marks_, now, sent_);
  for (const SentPrompts::Found& found : sent_) {
    RankView* const view = ViewOf(found.rank);
    if (view == nullptr) continue;
    view->believed = std::max(view->believed, found.believed);
    view->shared = found.shared;
  }
}

// Takes out the ranks that cannot take another request. False: none has room.
bool Steering::LeaveOutFull(std::span<const Place> places) {
  bool any_free = false;
  size_t kept = 0;
  for (size_t i = 0; i < decision_.ranks.size(); ++i) {
    const RankLimits limits = LimitsOf(places[i].worker->report);
    const Room room =
        RoomFor(decision_.prompt, decision_.ranks[i], limits, world_.options.queue_threshold);
    any_free = any_free || room == Room::kFree;
    if (room == Room::kFull) {
      decision_.full.push_back(decision_.ranks[i].rank);
      decision_.full_tokens = std::max(decision_.full_tokens, decision_.ranks[i].cached[0]);
      continue;
    }
    decision_.ranks[kept] = decision_.ranks[i];
    positions_[kept++] = i;
  }
  if (!any_free) return false;
  decision_.ranks.resize(kept);
  positions_.resize(kept);
  return true;
}

Steering::Choice Steering::Decide(const RouteQuestion& question, std::span<const Place> places,
                                  TimePoint now, Patience patience) {
  const SteeringOptions& options = world_.options;
  const bool known = !question.tokens.empty();
  decision_.mode = options.mode;
  decision_.events = options.events;
  decision_.tokens_known = known;
  // Of some prompts only the beginning is known.
  decision_.prompt.tokens =
      std::max(static_cast<uint32_t>(question.tokens.size()), question.prompt_tokens);
  decision_.weights = question.weights;
  decision_.random = random_.Next();
  decision_.at = now;
  decision_.tree_size = depths_->blocks();
  decision_.full.clear();
  decision_.full_tokens = 0;
  LookAt(places, question, now);
  marks_.clear();
  outsiders_.clear();
  lost_ = {};
  stages_ = {};
  Stopwatch watch;
  if (known) {
    MarkPrompt(question.tokens, question.seed ^ world_.secret, marks_, question.known.Marks());
    stages_.hash = watch.Lap();
    if (world_.approximate) world_.approximate->Expire(now);
    FindDepths(question);
    FindSent(now);
    lost_ = depths_->FindLost(question.tokens, question.seed, question.known);
    stages_.lookup = watch.Lap();
  }
  if (options.mode == RouterMode::kPrefixHash && known) {
    decision_.prefix = PrefixHash(question.tokens, options.prefix_tokens, question.seed);
    decision_.bound = options.prefix_bound;
  }
  if (patience == Patience::kMayWait && !LeaveOutFull(places)) return {};
  Choose(decision_);
  stages_.choose = watch.Lap();
  return {&decision_, places[positions_[decision_.chosen]]};
}

PrefixKeys Steering::Keys(const RouteQuestion& question) {
  PrefixKeys keys;
  keys.marks = marks_;
  depths_->Keep(question.tokens, question.seed, keys);
  return keys;
}

}  // namespace fathom
