#include "routing/decision.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "routing/random_views.h"

namespace fathom {
namespace {

// Ranks whose backlogs are given, and who are alike otherwise.
Decision Between(std::initializer_list<double> backlogs, double temperature = 0) {
  Decision decision;
  decision.prompt.tokens = 100;
  decision.weights.temperature = temperature;
  for (const double backlog : backlogs) {
    RankView rank{.rank = {.worker = decision.ranks.size() + 1}};
    rank.load.backlog = backlog;
    decision.ranks.push_back(rank);
  }
  return decision;
}

std::vector<size_t> Count(Decision decision, size_t times) {
  std::vector<size_t> counts(decision.ranks.size());
  Random random(1);
  for (size_t i = 0; i < times; ++i) {
    decision.random = random.Next();
    Choose(decision);
    ++counts[decision.chosen];
  }
  return counts;
}

TEST(Decision, TakesTheCheapestAndSaysByHowMuch) {
  Decision decision = Between({500, 200, 300});
  Choose(decision);
  EXPECT_EQ(decision.chosen, 1u);
  EXPECT_EQ(decision.rank().rank.worker, 2u);
  ASSERT_EQ(decision.prices.size(), 3u);
  EXPECT_EQ(decision.margin, decision.prices[2].cost - decision.prices[1].cost);
  EXPECT_GT(decision.margin, 0);
}

TEST(Decision, HasNoMarginWithoutARunnerUp) {
  Decision decision = Between({500});
  Choose(decision);
  EXPECT_EQ(decision.chosen, 0u);
  EXPECT_EQ(decision.margin, 0);
}

TEST(Decision, BreaksTiesEvenly) {
  const auto counts = Count(Between({7, 3, 3, 9, 3}), 3000);
  EXPECT_EQ(counts[0] + counts[3], 0u);
  for (const size_t i : {1, 2, 4}) EXPECT_NEAR(static_cast<double>(counts[i]), 1000, 120) << i;
}

TEST(Decision, SpreadsMoreTheHigherTheTemperature) {
  const auto cold = Count(Between({0, 100, 200}, 0.01), 3000);
  EXPECT_EQ(cold[0], 3000u);
  // Shares of exp(0), exp(-0.5), exp(-1).
  const auto warm = Count(Between({0, 100, 200}, 1), 3000);
  EXPECT_NEAR(static_cast<double>(warm[0]), 3000 * 0.506, 150);
  EXPECT_NEAR(static_cast<double>(warm[2]), 3000 * 0.186, 120);
  const auto hot = Count(Between({0, 100, 200}, 100), 3000);
  EXPECT_NEAR(static_cast<double>(hot[2]), 1000, 120);
  const auto alike = Count(Between({5, 5, 5}, 1), 3000);
  EXPECT_NEAR(static_cast<double>(alike[0]), 1000, 120);
}

TEST(Decision, ReportsAsCachedOnlyWhatEventsSay) {
  Decision decision = Between({0});
  decision.ranks[0].cached = {48, 64, 64, 64};
  decision.ranks[0].believed = 80;
  Choose(decision);
  EXPECT_EQ(decision.cached_tokens(), 48u);
  decision.events = false;
  EXPECT_EQ(decision.cached_tokens(), 0u);
}

Decision AnyDecision() {
  Decision decision;
  decision.mode = *rc::gen::element(RouterMode::kKv, RouterMode::kKv, RouterMode::kPrefixHash);
  decision.events = *rc::gen::arbitrary<bool>();
  decision.tokens_known = *rc::gen::arbitrary<bool>();
  decision.prompt = AnyPrompt();
  decision.weights = AnyWeights();
  decision.random = *rc::gen::arbitrary<uint64_t>();
  decision.prefix = *rc::gen::arbitrary<uint64_t>();
  decision.bound = 1 + AnyShare();
  decision.ranks = AnyRanks(decision.prompt.tokens);
  return decision;
}

RC_GTEST_PROP(DecisionProperty, AreReplayedBitForBit, ()) {
  Decision recorded = AnyDecision();
  Choose(recorded);
  Decision replayed = recorded;
  replayed.prices.clear();
  replayed.chosen = ~size_t{0};
  replayed.margin = -1;
  Choose(replayed);
  RC_ASSERT(replayed.prices == recorded.prices);
  RC_ASSERT(replayed.chosen == recorded.chosen);
  RC_ASSERT(replayed.margin == recorded.margin);
}

RC_GTEST_PROP(DecisionProperty, ChooseAmongTheRanksAndKnowTheRunnerUp, ()) {
  Decision decision = AnyDecision();
  Choose(decision);
  RC_ASSERT(decision.chosen < decision.ranks.size());
  RC_ASSERT(decision.prices.size() == decision.ranks.size());
  const auto& cheapest = std::ranges::min(decision.prices, {}, &Price::cost);
  const bool by_price = decision.mode == RouterMode::kKv || !decision.tokens_known;
  if (by_price && decision.weights.temperature == 0) {
    RC_ASSERT(decision.price().cost == cheapest.cost);
    RC_ASSERT(decision.margin >= 0);
  }
}

// By a power of two, which changes no digit of any number.
RC_GTEST_PROP(DecisionProperty, DoNotDependOnTheUnitOfCost, ()) {
  Decision decision = AnyDecision();
  for (RankView& rank : decision.ranks) {
    rank.load.context = 0;
    rank.shared = decision.prompt.tokens;
  }
  Choose(decision);
  Decision scaled = decision;
  const double factor = std::exp2(*rc::gen::inRange(-20, 21));
  scaled.weights.prefill_scale *= factor;
  scaled.weights.active_request *= factor;
  Choose(scaled);
  RC_ASSERT(scaled.chosen == decision.chosen);
  RC_ASSERT(scaled.margin == decision.margin * factor);
}

// One rank gets better, the others stay: it must not lose the request by that.
RC_GTEST_PROP(DecisionProperty, StayWithARankThatGetsBetter, ()) {
  Decision decision = AnyDecision();
  decision.mode = RouterMode::kKv;
  decision.weights.temperature = 0;
  Choose(decision);
  const double margin = decision.margin;
  const size_t chosen = decision.chosen;
  RankView& rank = decision.ranks[chosen];
  rank.believed += AnyTokens(5000);
  rank.load.backlog *= AnyShare();
  rank.load.context -= *rc::gen::inRange<uint64_t>(0, rank.load.context + 1);
  Choose(decision);
  // Beside what rounding may add.
  const double cost = decision.price().cost;
  const double rounding = 1e-9 * std::max(1.0, cost);
  if (margin > rounding) RC_ASSERT(decision.chosen == chosen);
  RC_ASSERT(decision.prices[chosen].cost <= cost + rounding);
}

}  // namespace
}  // namespace fathom
