#include "router/fleet/prediction_record.h"

#include <algorithm>

namespace fathom {
namespace {

// Unforeseen share of the found tokens above which it is drift.
constexpr double kSurprise = 0.5;

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double PredictionRecord::Sums::missing_share() const { return Share(missing, predicted); }
double PredictionRecord::Sums::unforeseen_share() const { return Share(unforeseen, cached); }

PredictionRecord::Sums PredictionRecord::SumOf(const Space& space, size_t latest) {
  Sums sums;
  const uint64_t have = std::min<uint64_t>({space.count, kKept, latest});
  for (uint64_t i = space.count - have; i < space.count; ++i) {
    const Outcome& outcome = space.kept[i % kKept];
    ++sums.requests;
    sums.predicted += outcome.predicted;
    sums.cached += outcome.cached;
    sums.missing += outcome.missing;
    sums.unforeseen += outcome.unforeseen;
  }
  return sums;
}

void PredictionRecord::Add(PromptSpace space, const Outcome& outcome) {
  if (outcome.predicted == 0 && outcome.cached == 0) return;
  Space& kept = spaces_[static_cast<size_t>(space)];
  kept.kept[kept.count++ % kKept] = outcome;
  Judge(kept);
}

void PredictionRecord::Judge(Space& space) const {
  if (space.count < kEnough) return;
  // Outcomes from before a recovery are still kept and must not renew the doubt.
  const double lately = SumOf(space, kEnough).missing_share();
  const double in_all = SumOf(space, kKept).missing_share();
  space.less = space.less ? lately > kTrust : std::min(lately, in_all) > kDoubt;
  const Space& plain = spaces_[static_cast<size_t>(PromptSpace::kPlain)];
  const bool plain_fine = plain.count >= kEnough && SumOf(plain, kKept).unforeseen_share() < kTrust;
  const double surprise = SumOf(space, kEnough).unforeseen_share();
  space.more = &space != &plain && plain_fine && surprise > kSurprise;
}

PredictionDrift PredictionRecord::Describe(PromptSpace space, bool more) const {
  const Sums sums = SumOf(spaces_[static_cast<size_t>(space)], kKept);
  bool others = false;
  bool others_fine = true;
  for (size_t i = 0; i < kPromptSpaces; ++i) {
    if (i == static_cast<size_t>(space) || spaces_[i].count == 0) continue;
    others = true;
    others_fine = others_fine && SumOf(spaces_[i], kKept).missing_share() <= kTrust;
  }
  return {.space = space,
          .others_fine = others && others_fine,
          .more = more,
          .requests = sums.requests,
          .predicted = sums.predicted,
          .cached = sums.cached};
}

std::optional<PredictionDrift> PredictionRecord::Look() const {
  for (size_t i = 0; i < kPromptSpaces; ++i) {
    if (spaces_[i].less) return Describe(static_cast<PromptSpace>(i), false);
  }
  for (size_t i = 0; i < kPromptSpaces; ++i) {
    if (spaces_[i].more) return Describe(static_cast<PromptSpace>(i), true);
  }
  return std::nullopt;
}

double PredictionRecord::Credit(PromptSpace space) const {
  const Space& kept = spaces_[static_cast<size_t>(space)];
  return kept.less ? 1 - SumOf(kept, kEnough).missing_share() : 1;
}

}  // namespace fathom
