#include "router/routing/steering.h"

#include <algorithm>
#include <utility>

#include "router/routing/prefix_hash.h"

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

// Further ranks that hold the prompt and cannot be chosen add no information.
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
  if (o.mode == RouterMode::kKv && o.by_text) texts.emplace(o.text_ttl, o.text_bytes, s);
}

// At this moment, with nothing that the lookup has found of the prompt.
RankView Steering::Look(uint32_t position) {
  const Place& place = roster_->at(position);
  RankView view{.rank = roster_->label(position), .position = position};
  view.slowness = place.rank->SlownessAt(now_);
  view.load = place.rank->load.Look(now_, unit_ * view.slowness);
  const bool caches = place.worker->report.prefix_caching().value_or(true);
  const bool usable = caches && !place.rank->doubted.load(std::memory_order_relaxed);
  view.trust = usable ? place.rank->witness.Credit(space_, kind_) : 0;
  // What is known of texts does not depend on events.
  if (decision_.by_text) view.trust = caches ? place.rank->text.credit() : 0;
  view.capacity = place.worker->report.kv_tokens();
  if (!decision_.tokens_known) return view;
  const Roster::Holding& holding = roster_->holding(position);
  view.held = holding.held;
  view.block_size = holding.block_size;
  view.pairs = holding.pairs;
  return view;
}

// Not slow, whatever it is: slowness only adds to a cost.
RankView Steering::Glance(uint32_t position) {
  RankView view;
  view.load = roster_->at(position).rank->load.LookAgain(now_, unit_);
  if (decision_.tokens_known) view.SetFree(roster_->FreeAt(position));
  return view;
}

Room Steering::RoomOf(const RankView& rank) {
  if (!may_wait_) return Room::kFree;
  const RankLimits limits = LimitsOf(roster_->at(rank.position).worker->report);
  return RoomFor(decision_.prompt, rank, limits, world_.options.queue_threshold);
}

RankView& Steering::Listed(uint32_t position) {
  uint32_t slot = roster_->SlotOf(position);
  if (slot == Roster::kNone) {
    slot = static_cast<uint32_t>(decision_.ranks.size());
    roster_->SetSlot(position, slot);
    decision_.ranks.push_back(Look(position));
  }
  return decision_.ranks[slot];
}

void Steering::ListAll() {
  for (uint32_t i = 0; i < roster_->size(); ++i) {
    if (!roster_->IsExcluded(i)) Listed(i);
  }
}

// Requests without a first byte on all candidates. Afterwards no silent prefill is overdue.
uint64_t Steering::CountWaiting() {
  uint64_t waiting = 0;
  for (Roster::Part& part : roster_->parts()) {
    const bool known = part.block != nullptr && roster_->IsWhole(part) &&
                       part.block->ranks() == part.end - part.begin && IsCalm(part);
    waiting += known ? part.block->waiting() : CountWaitingIn(part);
  }
  return waiting;
}

// Whether no rank must be asked if a prefill has ended.
bool Steering::IsCalm(const Roster::Part& part) const {
  if (part.block->silent() == 0) return true;
  if (part.block->changes() != part.changes) return false;
  // No rank is faster than this.
  return std::ranges::none_of(
      part.silences, [&](const RankLoad::Silence& silence) { return silence.End(unit_) <= now_; });
}

uint64_t Steering::CountWaitingIn(Roster::Part& part) {
  // Read before the ranks: a change while they are read is seen next time.
  if (part.block != nullptr) part.changes = part.block->changes();
  part.silences.clear();
  uint64_t waiting = 0;
  for (uint32_t i = part.begin; i < part.end; ++i) {
    if (roster_->IsExcluded(i)) continue;
    Rank& rank = *roster_->at(i).rank;
    if (rank.load.silent()) {
      rank.load.Look(now_, unit_ * rank.SlownessAt(now_));
      if (rank.load.silent()) part.silences.push_back(rank.load.silence());
    }
    waiting += rank.load.waiting_in_all();
  }
  if (!roster_->IsWhole(part)) part.changes = Roster::kUnread;
  return waiting;
}

void Steering::FindDepths(const RouteQuestion& question) {
  const auto all = depths_->Find(question.tokens, question.seed, question.known);
  roster_->Take(all, [&](uint32_t position, const CacheReader::Found& found) {
    if (position == Roster::kNone || roster_->IsExcluded(position)) {
      const auto tokens = static_cast<uint32_t>(found.tokens[0]);
      if (tokens > 0 && outsiders_.size() < kMostOutsiders) {
        outsiders_.push_back({found.rank, tokens});
      }
      return;
    }
    RankView& view = Listed(position);
    // Estimated depths count as beliefs: only events confirm.
    if (!decision_.events) view.believed = static_cast<uint32_t>(found.tokens[0]);
    for (size_t tier = 0; tier < kTiers && decision_.events; ++tier) {
      // A rank that restarts with another block shape can briefly be in two indexes.
      view.cached[tier] = std::max(view.cached[tier], static_cast<uint32_t>(found.tokens[tier]));
    }
  });
  // Listed before the lookup, or with only the first of two shapes.
  for (RankView& view : decision_.ranks) {
    const Roster::Holding& holding = roster_->holding(view.position);
    view.held = holding.held;
    view.block_size = holding.block_size;
    view.pairs = holding.pairs;
  }
}

// As a belief: the router itself has sent them. What the roster knows of the ranks' caches stays.
void Steering::FindTexts(const RouteQuestion& question) {
  if (!texts_) return;
  for (const CacheReader::Found& found : texts_->Match(question.tokens, question.seed)) {
    if (found.tokens[0] == 0) continue;
    const uint32_t position = roster_->Find(found.rank);
    if (position == Roster::kNone || roster_->IsExcluded(position)) continue;
    RankView& view = Listed(position);
    view.text = static_cast<uint32_t>(found.tokens[0]);
    view.believed = view.text;
  }
}

void Steering::FindSent(TimePoint now) {
  world_.sent.Find(marks_, now, sent_);
  for (const SentPrompts::Found& found : sent_) {
    const uint32_t position = roster_->Find(found.rank);
    if (position == Roster::kNone || roster_->IsExcluded(position)) continue;
    if (found.believed == 0 && found.shared == 0) continue;
    RankView& view = Listed(position);
    view.believed = std::max(view.believed, found.believed);
    view.shared = found.shared;
  }
}

// A rank that is not listed cannot be chosen, so the hinted one is. Its session's last prompt
// counts as cached there while its events may be late, as far as this prompt begins with it.
void Steering::TakeHint(const RouteQuestion::Hint& hint) {
  const uint32_t position = roster_->Find(hint.last.rank);
  if (position == Roster::kNone || roster_->IsExcluded(position)) return;
  RankView& view = Listed(position);
  decision_.hint = {.kind = hint.kind, .rank = view.rank, .otherwise = view.believed};
  const uint32_t tokens = hint.last.mark.tokens;
  const uint32_t known = std::max(view.cached[kTiers - 1], view.believed);
  if (tokens <= known || !HoldsSession(hint, position)) return;
  decision_.hint->tokens = tokens - known;
  view.believed = tokens;
}

// What events confirm elsewhere is worth more than what a hint suggests.
bool Steering::HoldsSession(const RouteQuestion::Hint& hint, uint32_t position) const {
  const PromptMark& mark = hint.last.mark;
  if (!hint.events_late || roster_->at(position).rank->life() != hint.last.life) return false;
  if (std::ranges::find(marks_, mark) == marks_.end()) return false;
  return std::ranges::none_of(decision_.ranks, [&](const RankView& rank) {
    return rank.trust > 0 && rank.cached[kTiers - 1] > mark.tokens;
  });
}

// Removes the listed ranks that are full. Returns whether one of the others has room.
bool Steering::LeaveOutFull() {
  bool any_free = false;
  uint32_t kept = 0;
  for (const RankView& view : decision_.ranks) {
    const Room room = RoomOf(view);
    any_free = any_free || room == Room::kFree;
    roster_->SetSlot(view.position, room == Room::kFull ? Roster::kSeen : kept);
    if (room != Room::kFull) {
      decision_.ranks[kept++] = view;
      continue;
    }
    if (decision_.full.size() < Decision::kMostFull) decision_.full.push_back(view.rank);
    decision_.full_tokens = std::max(decision_.full_tokens, view.cached[0]);
  }
  decision_.ranks.resize(kept);
  return any_free;
}

void Steering::Begin(const RouteQuestion& question, Roster& roster, TimePoint now) {
  const SteeringOptions& options = world_.options;
  roster_ = &roster;
  now_ = now;
  unit_ = world_.speed.unit();
  space_ = question.space;
  kind_ = question.kind;
  decision_.mode = options.mode;
  decision_.events = options.events;
  decision_.tokens_known = !question.tokens.empty();
  decision_.by_text = question.by_text;
  decision_.several = options.several;
  // For some prompts only the leading tokens are known.
  decision_.prompt.tokens =
      std::max(static_cast<uint32_t>(question.tokens.size()), question.prompt_tokens);
  decision_.weights = question.weights;
  decision_.random = random_.Next();
  decision_.at = now;
  decision_.tree_size = depths_->blocks();
  decision_.ranks.clear();
  decision_.places = roster.size();
  decision_.others = {};
  decision_.full.clear();
  decision_.full_tokens = 0;
  decision_.hint.reset();
  const auto waiting = static_cast<double>(CountWaiting() + question.queued);
  decision_.prompt.pressure = waiting / roster.present();
  marks_.clear();
  outsiders_.clear();
  lost_ = {};
  stages_ = {};
}

Steering::Choice Steering::Decide(const RouteQuestion& question, std::span<const Place> places,
                                  TimePoint now, Patience patience) {
  if (!given_.Has(places)) given_.Assign(places, Roster::Blocks::kIgnored);
  given_.StartTurn();
  return Decide(question, given_, now, patience);
}

Steering::Choice Steering::Decide(const RouteQuestion& question, Roster& roster, TimePoint now,
                                  Patience patience) {
  const SteeringOptions& options = world_.options;
  Begin(question, roster, now);
  may_wait_ = patience == Patience::kMayWait;
  const bool known = decision_.tokens_known;
  const bool by_prefix = options.mode == RouterMode::kPrefixHash && known;
  const bool all = roster.size() <= kAllListed || !roster.has_blocks() ||
                   question.weights.temperature > 0 || by_prefix;
  if (all) ListAll();
  Stopwatch watch;
  if (known) {
    MarkPrompt(question.tokens, question.seed ^ world_.secret, marks_, question.known.Marks());
    stages_.hash = watch.Lap();
    if (world_.approximate) world_.approximate->Expire(now);
    if (world_.texts) world_.texts->Expire(now);
    question.by_text ? FindTexts(question) : FindDepths(question);
    FindSent(now);
    if (!question.by_text) {
      lost_ = depths_->FindLost(question.tokens, question.seed, question.known);
    }
    stages_.lookup = watch.Lap();
  } else if (question.continued.tokens > 0) {
    const uint32_t position = roster.Find(question.continued.rank);
    const bool present = position != Roster::kNone && !roster.IsExcluded(position);
    if (present) Listed(position).believed = question.continued.tokens;
  }
  if (question.hint) TakeHint(*question.hint);
  if (by_prefix) {
    decision_.prefix = PrefixHash(question.tokens, options.prefix_tokens, question.seed);
    decision_.bound = options.prefix_bound;
  }
  const bool any_free = !may_wait_ || LeaveOutFull();
  if (all && !any_free) return {};
  if (!all && !search_.Run({.roster = roster,
                            .decision = decision_,
                            .views = *this,
                            .held_known = known,
                            .any_free = any_free})) {
    return {};
  }
  fathom::Decide(decision_);
  Shorten(decision_);
  stages_.choose = watch.Lap();
  return {&decision_, roster.at(decision_.rank().position)};
}

PrefixKeys Steering::Keys(const RouteQuestion& question) {
  PrefixKeys keys;
  keys.marks = marks_;
  depths_->Keep(question.tokens, question.seed, keys);
  return keys;
}

}  // namespace fathom
