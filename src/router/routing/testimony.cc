#include "router/routing/testimony.h"

#include <algorithm>

namespace fathom {
namespace {

constexpr uint32_t kUsualBlock = 16;
constexpr size_t kExpectedKeys = 32;
// An event that is missing for longer than this after the request was sent is not counted as lag.
constexpr uint32_t kLongestLag = 60;  // seconds
// After this time, events should have reported the computed blocks.
constexpr uint32_t kToldByThen = 4;  // seconds

BlockShape ShapeOf(const Place& place, const RankView& view) {
  if (view.block_size != 0) return {.size = view.block_size, .pairs = view.pairs};
  const uint32_t reported = place.worker->report.event_block_size();
  return {.size = reported != 0 ? reported : kUsualBlock};
}

bool IsTrusted(const Rank& rank) {
  return rank.witness.trusted() && !rank.doubted.load(std::memory_order_relaxed);
}

uint32_t AgeOf(const LostBlocks::Loss& loss, TimePoint now) {
  // The current times of two loops may differ slightly.
  const auto age = static_cast<int32_t>(LostBlocks::SecondOf(now) - loss.second);
  return static_cast<uint32_t>(std::max(age, 0));
}

WasteCause CauseOf(const LostBlocks::Loss& loss, const OwnerBook::Owner& owner, TimePoint now) {
  switch (loss.how) {
    case LostHow::kEvicted:
      return WasteCause::kEvicted;
    case LostHow::kGone:
      return WasteCause::kGone;
    case LostHow::kForgotten:
      return WasteCause::kForgotten;
    case LostHow::kSent:
      break;
  }
  if (!owner.routable) return WasteCause::kExcluded;
  if (!IsTrusted(*owner.rank)) return WasteCause::kDoubted;
  return AgeOf(loss, now) <= kLongestLag ? WasteCause::kLag : WasteCause::kGone;
}

}  // namespace

Testimony::Testimony(LostBlocks* lost, Steering& steering, const Steering::Choice& choice,
                     const RouteQuestion& question, const About& about, TimePoint now)
    : lost_blocks_(lost),
      rank_(*choice.place.rank),
      label_(choice.place.label()),
      shape_(ShapeOf(choice.place, choice.decision->rank())) {
  const Decision& decision = *choice.decision;
  served_ = {.space = question.space,
             .block_size = shape_.size,
             .predicted = decision.cached_tokens(),
             .repeated = decision.cached_tokens(),
             .comparable = about.comparable,
             .sent = now,
             .pulse = rank_.witness.pulse()};
  known_.used = std::max(served_.predicted, decision.rank().believed);
  Note(WasteCause::kMispredicted, served_.predicted, &rank_);
  NoteOthers(decision, steering.outsiders(), about);
  NoteLost(steering, about, now);
  const size_t blocks = shape_.BlocksIn(question.tokens.size());
  served_.has_block = blocks > 0;
  // If the prompt fills its last block exactly, that block is always recomputed and the engine may
  // send no event for it.
  served_.has_news =
      blocks > known_.used / shape_.size && known_.used < shape_.MostCached(question.tokens.size());
  NoteBlocks(steering, question, about, decision.rank().load.requests > 0, now);
}

Testimony::~Testimony() {
  if (note_ != 0 && !first_byte_) rank_.witness.Withdraw(note_);
}

void Testimony::Note(WasteCause cause, uint32_t tokens, Rank* owner) {
  const auto i = static_cast<size_t>(cause);
  if (tokens > known_.by_cause[i]) owners_[i] = owner;
  known_.Note(cause, tokens);
}

void Testimony::NoteOthers(const Decision& decision, std::span<const Steering::Outsider> outsiders,
                           const About& about) {
  for (size_t i = 0; i < decision.ranks.size(); ++i) {
    const RankView& view = decision.ranks[i];
    if (i == decision.chosen) continue;
    const uint32_t tokens = std::max(view.cached[0], view.believed);
    if (view.trust >= 1) {
      Note(WasteCause::kLoad, tokens, nullptr);
    } else if (tokens > 0) {
      const Member* const member = about.fleet.Find(WorkerId(view.rank.worker));
      Note(WasteCause::kDoubted, tokens,
           member == nullptr ? nullptr : member->worker->ranks.Find(view.rank.dp_rank));
    }
  }
  Note(WasteCause::kFull, decision.full_tokens, nullptr);
  for (const Steering::Outsider& outsider : outsiders) {
    const Member* const member = about.fleet.Find(WorkerId(outsider.rank.worker));
    if (member == nullptr || !member->Serves(about.model)) continue;
    const bool overridden = about.narrowed && member->state == WorkerState::kReady;
    Note(overridden ? WasteCause::kOverride : WasteCause::kExcluded, outsider.tokens, nullptr);
  }
}

void Testimony::NoteLost(Steering& steering, const About& about, TimePoint now) {
  const CacheReader::Lost& lost = steering.lost();
  if (lost.tokens == 0) return;
  const auto tokens = static_cast<uint32_t>(lost.tokens);
  if (lost.loss.how == LostHow::kSent &&
      lost.loss.owner == LostBlocks::OwnerOf(label_.worker, label_.dp_rank)) {
    served_.repeated = std::max(served_.repeated, tokens);
    if (AgeOf(lost.loss, now) >= kToldByThen) served_.untold = tokens;
    known_.used = std::max(known_.used, tokens);
    return;
  }
  const OwnerBook::Owner owner = steering.owners().Find(about.fleet, about.model, lost.loss.owner);
  if (owner.rank == nullptr) return;
  Note(CauseOf(lost.loss, owner, now), tokens, owner.rank);
}

// Notes the request's new blocks: their keys, to be remembered, and some of their tokens, to be
// compared with the engine's stored events.
void Testimony::NoteBlocks(Steering& steering, const RouteQuestion& question, const About& about,
                           bool busy, TimePoint now) {
  const size_t known = served_.predicted / shape_.size;
  const size_t from = known == 0 ? 0 : known - 1;
  const std::span<const uint64_t> keys =
      served_.has_news ? steering.KeysOf(question, shape_, from) : std::span<const uint64_t>();
  const std::span<const uint64_t> fresh = keys.subspan(std::min(known - from, keys.size()));
  if (lost_blocks_ != nullptr) keys_.assign(fresh.begin(), fresh.end());
  std::optional<ExpectedBlocks> expected;
  // For prompts with an adapter or a salt, events may not identify the namespace of their blocks.
  const bool plain = question.space == PromptSpace::kPlain;
  if (about.exact && plain && !fresh.empty() && !shape_.pairs && rank_.witness.MayExpect(now)) {
    const auto tokens = question.tokens.subspan(known * shape_.size);
    const auto some = tokens.first(std::min(tokens.size(), TokenAgreement::kTokens));
    const auto some_keys = fresh.first(std::min(fresh.size(), kExpectedKeys));
    expected = ExpectedBlocks{.from = static_cast<uint32_t>(known * shape_.size),
                              .before = known == 0 ? 0 : keys.front(),
                              .tokens = {some.begin(), some.end()},
                              .keys = {some_keys.begin(), some_keys.end()},
                              .block_size = shape_.size,
                              .model = std::string(about.model),
                              .kind = question.kind};
  }
  note_ = rank_.witness.Sent(busy, std::move(expected), now);
}

void Testimony::FirstByte(TimePoint now) {
  if (first_byte_) return;
  first_byte_ = true;
  if (note_ != 0) rank_.witness.FirstByte(note_, now);
  if (lost_blocks_ == nullptr || keys_.empty()) return;
  lost_blocks_->SetNow(now);
  lost_blocks_->AddShape(shape_);
  lost_blocks_->Add(keys_, LostHow::kSent, LostBlocks::OwnerOf(label_.worker, label_.dp_rank));
  keys_ = {};
}

std::optional<Testimony::Outcome> Testimony::End(std::optional<uint32_t> cached, TimePoint now) {
  if (!first_byte_) return std::nullopt;
  served_.cached = cached;
  // A number that the engine counts differently is no evidence about the prefix either.
  const std::optional<uint32_t> found = served_.comparable ? cached : std::nullopt;
  Waste waste = WasteOf(known_, found);
  // Tokens evicted between the decision and the answer were not mispredicted.
  const PulseReading pulse = rank_.witness.pulse();
  const uint64_t left =
      (pulse.removed - std::min(pulse.removed, served_.pulse.removed)) * shape_.size;
  const auto evicted =
      static_cast<uint32_t>(std::min<uint64_t>(left, waste[WasteCause::kMispredicted]));
  waste[WasteCause::kMispredicted] -= evicted;
  CountServed(waste, evicted, found, now);
  waste[WasteCause::kEvicted] += evicted;
  return Outcome{.predicted = served_.predicted, .found = found, .waste = waste};
}

// `evicted`: tokens that the chosen rank evicted before the request could use them.
void Testimony::CountServed(const Waste& waste, uint32_t evicted, std::optional<uint32_t> found,
                            TimePoint now) {
  rank_.witness.Served(served_, now);
  Rank* const former = owners_[static_cast<size_t>(WasteCause::kEvicted)];
  uint32_t gone_here = evicted;
  if (former == &rank_) gone_here += waste[WasteCause::kEvicted];
  rank_.witness.Returned(gone_here, found.value_or(served_.predicted), now);
  if (evicted > 0) rank_.witness.Wasted(evicted, now);
  if (former != nullptr && former != &rank_) {
    former->witness.Returned(waste[WasteCause::kEvicted], 0, now);
  }
  for (size_t i = 0; i < kWasteCauses; ++i) {
    if (owners_[i] != nullptr && waste.tokens[i] > 0) {
      owners_[i]->witness.Wasted(waste.tokens[i], now);
    }
  }
}

}  // namespace fathom
