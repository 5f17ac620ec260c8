#include "router/fleet/rank_slowness.h"

#include <algorithm>
#include <cmath>

namespace fathom {
namespace {

constexpr double kFadingPerToken = 0.99;
// The assumption that the rank is as fast as others weighs as much as this many of its first
// tokens: so the time until the evidence has faded is bounded, however long its prompts were.
constexpr double kAssumedTokens = 8;
// First tokens needed before a rank's own speed is used.
constexpr double kEnoughTokens = 20;
// Differences within this factor may be noise, or due to the mix of requests.
constexpr double kNotableRatio = 2;

double Faded(Duration time) {
  return std::exp2(-std::max(Seconds(time) / Seconds(RankSlowness::kHalfLife), 0.0));
}

double RatioOf(double took, double work, double assumed) {
  return (took + assumed) / (work + assumed);
}

}  // namespace

void RankSlowness::Observe(const FirstToken& token, uint64_t life, TimePoint now) {
  if (token.work <= 0 || !(token.ratio > 0) || token.life != life) return;
  const std::lock_guard lock(mutex_);
  if (life != life_) work_ = took_ = seen_ = recent_work_ = 0;
  life_ = life;
  const double fading = kFadingPerToken * Faded(now - last_);
  // Sums, not a mean of ratios: a short prompt waits for the engine's current step, whatever its
  // work, and would make every rank look slow.
  work_ = work_ * fading + token.work;
  took_ = took_ * fading + token.work * std::min(token.ratio, kMost);
  seen_ = seen_ * kFadingPerToken + 1;
  recent_work_ = recent_work_ * kFadingPerToken + token.work;
  last_ = now;
  Publish();
}

void RankSlowness::Publish() {
  shown_work_.store(work_, std::memory_order_relaxed);
  shown_took_.store(took_, std::memory_order_relaxed);
  shown_life_.store(life_, std::memory_order_relaxed);
  shown_last_.store(last_.time_since_epoch().count(), std::memory_order_relaxed);
  const double assumed = kAssumedTokens * recent_work_ / seen_;
  shown_assumed_.store(assumed, std::memory_order_relaxed);
  notable_.store(seen_ >= kEnoughTokens && RatioOf(took_, work_, assumed) >= kNotableRatio,
                 std::memory_order_relaxed);
}

double RankSlowness::At(TimePoint now, uint64_t life) const {
  // Nearly always: fading only brings it nearer to 1.
  if (!notable_.load(std::memory_order_relaxed)) return 1;
  if (shown_life_.load(std::memory_order_relaxed) != life) return 1;
  const TimePoint last{Duration(shown_last_.load(std::memory_order_relaxed))};
  const double fading = Faded(now - last);
  const double ratio = RatioOf(shown_took_.load(std::memory_order_relaxed) * fading,
                               shown_work_.load(std::memory_order_relaxed) * fading,
                               shown_assumed_.load(std::memory_order_relaxed));
  return ratio < kNotableRatio ? 1 : std::min(ratio, kMost);
}

}  // namespace fathom
