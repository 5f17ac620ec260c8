#include "router/routing/decision.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "testing/random_views.h"

namespace fathom {
namespace {

// Ranks with these backlogs, otherwise equal.
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
    Decide(decision);
    ++counts[decision.chosen];
  }
  return counts;
}

TEST(Decision, TakesTheCheapestAndSaysByHowMuch) {
  Decision decision = Between({500, 200, 300});
  Decide(decision);
  EXPECT_EQ(decision.chosen, 1u);
  EXPECT_EQ(decision.rank().rank.worker, 2u);
  ASSERT_EQ(decision.prices.size(), 3u);
  EXPECT_EQ(decision.margin, decision.prices[2].cost - decision.prices[1].cost);
  EXPECT_GT(decision.margin, 0);
}

TEST(Decision, HasNoMarginWithoutARunnerUp) {
  Decision decision = Between({500});
  Decide(decision);
  EXPECT_EQ(decision.chosen, 0u);
  EXPECT_EQ(decision.margin, 0);
}

TEST(Decision, BreaksTiesEvenly) {
  const auto counts = Count(Between({7, 3, 3, 9, 3}), 3000);
  EXPECT_EQ(counts[0] + counts[3], 0u);
  for (const size_t i : {1, 2, 4}) EXPECT_NEAR(static_cast<double>(counts[i]), 1000, 120) << i;
}

TEST(Decision, TakesAnyThatIsAsGoodWhereReplicasChooseAtTheSameTime) {
  Decision decision = Between({2, 1, 0, 500});
  EXPECT_EQ(Count(decision, 100)[2], 100u);
  decision.several = true;
  const auto counts = Count(decision, 3000);
  EXPECT_EQ(counts[3], 0u);
  for (const size_t i : {0, 1, 2}) EXPECT_NEAR(static_cast<double>(counts[i]), 1000, 120) << i;
  // Chance gives up no cached token.
  decision.ranks[2].cached.fill(10);
  EXPECT_EQ(Count(decision, 100)[2], 100u);
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

Decision Hinted(Decision decision, size_t rank) {
  decision.hint = {.rank = decision.ranks[rank].rank, .otherwise = decision.ranks[rank].believed};
  return decision;
}

TEST(Decision, FollowsAHintAmongEqualRanks) {
  const auto counts = Count(Hinted(Between({3, 3, 3, 3}), 2), 200);
  EXPECT_EQ(counts[2], 200u);
  Decision decision = Hinted(Between({3, 3}), 1);
  bool decided = false;
  bool agreed = false;
  for (decision.random = 0; decision.random < 20; ++decision.random) {
    Decide(decision);
    (decision.hint_decided ? decided : agreed) = true;
  }
  EXPECT_TRUE(decided) << "the shuffle preferred the other one";
  EXPECT_TRUE(agreed);
}

TEST(Decision, FollowsNoHintAgainstLoad) {
  // Of a prompt of 100 tokens, a tie is about three tokens of prefill.
  Decision decision = Hinted(Between({100, 101}), 1);
  Decide(decision);
  EXPECT_EQ(decision.chosen, 1u);
  EXPECT_TRUE(decision.hint_decided);
  EXPECT_LT(decision.margin, 0);
  decision = Hinted(Between({100, 110}), 1);
  Decide(decision);
  EXPECT_EQ(decision.chosen, 0u);
  EXPECT_FALSE(decision.hint_decided);
}

TEST(Decision, FollowsNoHintAgainstACache) {
  Decision decision = Hinted(Between({100, 100}), 1);
  decision.ranks[0].cached = {1, 1, 1, 1};
  Decide(decision);
  EXPECT_EQ(decision.chosen, 0u) << "one token more";
  decision.ranks[0].load.backlog = 200;
  Decide(decision);
  EXPECT_EQ(decision.chosen, 1u) << "by load";
  EXPECT_FALSE(decision.hint_decided);
}

TEST(Decision, IsNotDecidedByAHintThatOnlyAgrees) {
  Decision decision = Hinted(Between({500, 100}), 1);
  Decide(decision);
  EXPECT_EQ(decision.chosen, 1u);
  EXPECT_FALSE(decision.hint_decided);
  // A belief of the hint that makes the difference.
  decision = Hinted(Between({100, 120}), 1);
  decision.ranks[1].believed = 64;
  decision.hint->tokens = 64;
  Decide(decision);
  EXPECT_EQ(decision.chosen, 1u);
  EXPECT_TRUE(decision.hint_decided);
}

TEST(Decision, DrawsWithoutHints) {
  const auto counts = Count(Hinted(Between({5, 5, 5}, 1), 1), 3000);
  EXPECT_NEAR(static_cast<double>(counts[1]), 1000, 120);
}

TEST(Decision, ReportsAsCachedOnlyWhatEventsSay) {
  Decision decision = Between({0});
  decision.ranks[0].cached = {48, 64, 64, 64};
  decision.ranks[0].believed = 80;
  Decide(decision);
  EXPECT_EQ(decision.cached_tokens(), 48u);
  decision.events = false;
  EXPECT_EQ(decision.cached_tokens(), 0u);
}

TEST(Decision, ListsEveryHolderAndTheBestOfALargeFleet) {
  Decision decision = Between({});
  for (size_t i = 0; i < 500; ++i) {
    RankView rank{.rank = {.worker = i + 1}};
    rank.load.backlog = static_cast<double>(1000 - i);
    if (i < 5) rank.cached = {16, 16, 16, 16};
    decision.ranks.push_back(rank);
  }
  Decide(decision);
  Shorten(decision);
  EXPECT_EQ(decision.ranks.size(), 5 + kBestListed);
  EXPECT_EQ(decision.rank().rank.worker, 500u);
  EXPECT_EQ(decision.others.count, 500 - decision.ranks.size());
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(decision.ranks[i].rank.worker, i + 1);
  EXPECT_GT(decision.others.lowest, decision.price().cost);
  EXPECT_GT(decision.others.highest, decision.others.lowest);
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
  Decide(recorded);
  Decision replayed = recorded;
  replayed.prices.clear();
  replayed.chosen = ~size_t{0};
  replayed.margin = -1;
  Decide(replayed);
  RC_ASSERT(replayed.prices == recorded.prices);
  RC_ASSERT(replayed.chosen == recorded.chosen);
  RC_ASSERT(replayed.margin == recorded.margin);
}

RC_GTEST_PROP(DecisionProperty, AreReplayedFromAShortList, ()) {
  Decision made = AnyDecision();
  const size_t count = *rc::gen::inRange<size_t>(kAllListed, 400);
  const std::vector<RankView> some = made.ranks;
  for (size_t i = some.size(); i < count; ++i) {
    made.ranks.push_back(some[i % some.size()]);
    made.ranks.back().rank.worker = i + 1;
    made.ranks.back().load.requests = *rc::gen::inRange<uint32_t>(0, 4);
    if (*rc::gen::arbitrary<bool>()) made.ranks.back().cached = {};
    if (*rc::gen::arbitrary<bool>()) made.ranks.back().believed = 0;
  }
  Decide(made);
  Decision kept = made;
  Shorten(kept);
  RC_ASSERT(kept.ranks.size() + kept.others.count == made.ranks.size());
  RC_ASSERT(kept.ranks.size() <= kAllListed ||
            kept.ranks.size() <= kHoldersListed + kBestListed + 1);
  RC_ASSERT(kept.rank().rank == made.rank().rank);
  RC_ASSERT(kept.price() == made.price());
  Decision replayed = kept;
  replayed.chosen = ~size_t{0};
  Decide(replayed);
  RC_ASSERT(replayed.chosen == kept.chosen);
  RC_ASSERT(replayed.prices == kept.prices);
  RC_ASSERT(replayed.margin == made.margin);
}

RC_GTEST_PROP(DecisionProperty, DecideAmongTheRanksAndKnowTheRunnerUp, ()) {
  Decision decision = AnyDecision();
  Decide(decision);
  RC_ASSERT(decision.chosen < decision.ranks.size());
  RC_ASSERT(decision.prices.size() == decision.ranks.size());
  const auto& cheapest = std::ranges::min(decision.prices, {}, &Price::cost);
  const bool by_price = decision.mode == RouterMode::kKv || !decision.tokens_known;
  if (by_price && decision.weights.temperature == 0) {
    RC_ASSERT(decision.price().cost == cheapest.cost);
    RC_ASSERT(decision.margin >= 0);
  }
}

// Scaled by a power of two, which is exact in floating point.
RC_GTEST_PROP(DecisionProperty, DoNotDependOnTheUnitOfCost, ()) {
  Decision decision = AnyDecision();
  for (RankView& rank : decision.ranks) {
    rank.load.context = 0;
    rank.shared = decision.prompt.tokens;
  }
  Decide(decision);
  Decision scaled = decision;
  const double factor = std::exp2(*rc::gen::inRange(-20, 21));
  scaled.weights.prefill_scale *= factor;
  scaled.weights.active_request *= factor;
  Decide(scaled);
  RC_ASSERT(scaled.chosen == decision.chosen);
  RC_ASSERT(scaled.margin == decision.margin * factor);
}

// If the chosen rank gets cheaper and the others stay the same, it must still be chosen.
RC_GTEST_PROP(DecisionProperty, StayWithARankThatGetsBetter, ()) {
  Decision decision = AnyDecision();
  decision.mode = RouterMode::kKv;
  decision.weights.temperature = 0;
  Decide(decision);
  const double margin = decision.margin;
  const size_t chosen = decision.chosen;
  RankView& rank = decision.ranks[chosen];
  rank.believed += AnyTokens(5000);
  rank.load.backlog *= AnyShare();
  rank.load.context -= *rc::gen::inRange<uint64_t>(0, rank.load.context + 1);
  Decide(decision);
  // Allowing for rounding errors.
  const double cost = decision.price().cost;
  const double rounding = 1e-9 * std::max(1.0, cost);
  if (margin > rounding) RC_ASSERT(decision.chosen == chosen);
  RC_ASSERT(decision.prices[chosen].cost <= cost + rounding);
}

}  // namespace
}  // namespace fathom
