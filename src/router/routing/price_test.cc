#include "router/routing/price.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "router/fleet/prefill_work.h"
#include "testing/random_views.h"

namespace fathom {
namespace {

constexpr PromptView kPricedPrompt{.tokens = 1000};

double CostOf(const RankView& rank, const Weights& weights = {}) {
  return PriceOf(kPricedPrompt, rank, weights).cost;
}

TEST(Price, IsTheWorkAndTheContextOfAnIdleRank) {
  const Price price = PriceOf(kPricedPrompt, {}, {.prefill_scale = 10});
  EXPECT_EQ(price.reused, 0);
  EXPECT_EQ(price.work, PrefillWork(1000, 0));
  EXPECT_EQ(price.prefill, 1.5 * price.work) << "others are disturbed by half of it";
  EXPECT_EQ(price.decode, 1000);
  EXPECT_EQ(price.cost, 10 * price.prefill + 1000);
}

TEST(Price, CountsCachedTokensByTheirTier) {
  const Weights weights{.host_hit = 0.5, .disk_hit = 0.25};
  RankView rank;
  rank.cached = {100, 300, 300, 300};
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, weights).reused, 100 + 100);
  rank.cached = {100, 300, 700, 700};
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, weights).reused, 100 + 100 + 100);
  rank.cached = {100, 100, 100, 500};
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, weights).reused, 100 + 100);
}

TEST(Price, CountsTheDeeperOfWhatIsConfirmedAndWhatIsBelieved) {
  RankView rank;
  rank.cached = {300, 300, 300, 300};
  rank.believed = 200;
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, {}).reused, 300);
  rank.believed = 500;
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, {}).reused, 500);
}

TEST(Price, AlwaysComputesTheLastToken) {
  RankView rank;
  rank.cached = {1000, 1000, 1000, 1000};
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, {}).reused, 999);
  rank.believed = 5000;
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, {}).reused, 999);
  EXPECT_EQ(PriceOf({.tokens = 0}, rank, {}).reused, 0);
}

TEST(Price, GivesNoCreditWithoutTrustOrWhereTheOperatorWantsNone) {
  RankView rank;
  rank.cached = {500, 500, 500, 500};
  rank.believed = 600;
  const double load_only = CostOf({});
  EXPECT_LT(CostOf(rank), load_only);
  EXPECT_EQ(CostOf(rank, {.overlap_credit = 0}), load_only);
  rank.trust = 0;
  EXPECT_EQ(CostOf(rank), load_only);
}

TEST(Price, IsNotFreeForACachedContext) {
  RankView cached;
  cached.cached = {16'000, 16'000, 16'000, 16'000};
  const Price behind = PriceOf({.tokens = 17'000}, cached, {});
  const Price alone = PriceOf({.tokens = 1000}, {}, {});
  EXPECT_GT(behind.work, 1.5 * alone.work);
}

TEST(Price, MakesSavedWorkWorthMoreUnderPressure) {
  RankView cached;
  cached.cached = {500, 500, 500, 500};
  cached.load.backlog = 1500;
  const auto dearer = [&](double pressure) {
    const PromptView prompt{.tokens = 1000, .pressure = pressure};
    return PriceOf(prompt, cached, {}).cost - PriceOf(prompt, {}, {}).cost;
  };
  EXPECT_GT(dearer(0), 0) << "while nobody waits, the idle rank is first";
  EXPECT_LT(dearer(4), 0);
}

TEST(Price, CountsEverythingThatASlowRankHasToDoInItsOwnTime) {
  RankView slow;
  slow.load.backlog = 5000;
  const Price usual = PriceOf(kPricedPrompt, slow, {});
  slow.slowness = 3;
  EXPECT_DOUBLE_EQ(PriceOf(kPricedPrompt, slow, {}).prefill, 3 * usual.prefill);
  EXPECT_EQ(PriceOf(kPricedPrompt, slow, {}).decode, usual.decode);
}

TEST(Price, CountsWhatMustMakeRoomInAFullCache) {
  RankView rank;
  rank.capacity = 10'000;
  rank.held = 9000;
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, {}).evicted, 0);
  EXPECT_EQ(CostOf(rank), CostOf({}));
  rank.held = 9600;
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, {}).evicted, 600);
  rank.held = 12'000;
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, {}).evicted, 1000);
  EXPECT_GT(CostOf(rank), CostOf({}));
  rank.believed = 700;
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, {}).evicted, 300) << "only what is new needs room";
  rank.capacity = 0;
  EXPECT_EQ(PriceOf(kPricedPrompt, rank, {}).evicted, 0) << "not known";
}

TEST(Price, CountsSharedTokensOnce) {
  RankView sharing;
  sharing.shared = 800;
  EXPECT_EQ(PriceOf(kPricedPrompt, sharing, {}).decode, 200);
  sharing.shared = 2000;
  EXPECT_EQ(PriceOf(kPricedPrompt, sharing, {}).decode, 0);
}

TEST(Price, CountsRequestsWhereTheyHaveAWeight) {
  RankView busy;
  busy.load.requests = 3;
  EXPECT_EQ(CostOf(busy, {.active_request = 0}), CostOf({}));
  EXPECT_EQ(CostOf(busy, {.active_request = 100}), CostOf({}) + 300);
}

// Allowing for rounding errors.
bool NotAbove(double a, double b) { return a <= b + 1e-9 * std::max(1.0, std::abs(b)); }

// Random inputs of a price.
struct Drawn {
  PromptView prompt = AnyPrompt();
  Weights weights = AnyWeights();
  RankView rank = AnyRank(0, prompt.tokens);

  Price price() const { return PriceOf(prompt, rank, weights); }
};

RC_GTEST_PROP(PriceProperty, MoreConfirmedDepthNeverMakesARankDearer, ()) {
  Drawn drawn;
  const Price before = drawn.price();
  const size_t from = *rc::gen::inRange<size_t>(0, kTiers);
  const uint32_t more = AnyTokens(10'000);
  // The count of a tier includes the faster tiers.
  drawn.rank.cached[from] += more;
  for (size_t tier = from + 1; tier < kTiers; ++tier) {
    drawn.rank.cached[tier] = std::max(drawn.rank.cached[tier], drawn.rank.cached[tier - 1]);
  }
  const Price after = drawn.price();
  RC_ASSERT(NotAbove(after.cost, before.cost));
  RC_ASSERT(NotAbove(before.reused, after.reused));
}

RC_GTEST_PROP(PriceProperty, MoreBelievedDepthNeverMakesARankDearer, ()) {
  Drawn drawn;
  const Price before = drawn.price();
  drawn.rank.believed += AnyTokens(10'000);
  RC_ASSERT(NotAbove(drawn.price().cost, before.cost));
}

RC_GTEST_PROP(PriceProperty, MoreTrustOrCreditNeverMakesARankDearer, ()) {
  Drawn drawn;
  const Price before = drawn.price();
  drawn.rank.trust = std::min(1.0, drawn.rank.trust + AnyShare());
  const Price trusted = drawn.price();
  RC_ASSERT(NotAbove(trusted.cost, before.cost));
  drawn.weights.overlap_credit = std::min(1.0, drawn.weights.overlap_credit + AnyShare());
  RC_ASSERT(NotAbove(drawn.price().cost, trusted.cost));
}

RC_GTEST_PROP(PriceProperty, MoreLoadNeverMakesARankCheaper, ()) {
  Drawn drawn;
  const Price before = drawn.price();
  RankView& rank = drawn.rank;
  switch (*rc::gen::resize(100, rc::gen::inRange(0, 6))) {
    case 0:
      rank.load.backlog += AnyTokens(100'000) * 0.5;
      break;
    case 1:
      rank.load.context += AnyTokens(1'000'000);
      break;
    case 2:
      rank.load.requests += *rc::gen::inRange<uint32_t>(0, 100);
      break;
    case 3:
      rank.shared -= *rc::gen::inRange<uint32_t>(0, rank.shared + 1);
      break;
    case 4:
      rank.held += AnyTokens(1'000'000);
      break;
    default:
      rank.slowness *= 1 + AnyShare();
      break;
  }
  RC_ASSERT(NotAbove(before.cost, drawn.price().cost));
}

RC_GTEST_PROP(PriceProperty, MorePressureNeverMakesARankCheaper, ()) {
  Drawn drawn;
  const Price before = drawn.price();
  drawn.prompt.pressure += AnyTokens(50) * 0.5;
  RC_ASSERT(NotAbove(before.cost, drawn.price().cost));
}

// If nothing is decoded, all costs are prefill, and scaling them does not change the order.
RC_GTEST_PROP(PriceProperty, TheUnitOfPrefillDoesNotChangeTheOrder, ()) {
  Drawn one;
  Drawn other;
  for (Drawn* drawn : {&one, &other}) {
    drawn->prompt = one.prompt;
    drawn->weights = one.weights;
    drawn->weights.active_request = 0;
    drawn->rank.shared = one.prompt.tokens;
    drawn->rank.load.context = 0;
  }
  const bool cheaper = one.price().cost < other.price().cost;
  RC_PRE(cheaper);
  one.weights.prefill_scale *= 0.001 + AnyTokens(100'000);
  other.weights = one.weights;
  RC_ASSERT(NotAbove(one.price().cost, other.price().cost));
}

RC_GTEST_PROP(PriceProperty, IsFiniteAndNotNegative, ()) {
  const Price price = Drawn().price();
  for (const double part : {price.reused, price.work, price.prefill, price.decode, price.cost}) {
    RC_ASSERT(std::isfinite(part));
    RC_ASSERT(part >= 0);
  }
}

}  // namespace
}  // namespace fathom
