#include "router/routing/policy.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace fathom {
namespace {

std::vector<Candidate> CandidatesWithLoads(std::initializer_list<uint32_t> loads) {
  std::vector<Candidate> candidates;
  for (const uint32_t load : loads) candidates.push_back({WorkerId(candidates.size()), load});
  return candidates;
}

std::vector<size_t> CountChoices(RouterMode mode, const std::vector<Candidate>& candidates,
                                 size_t times, uint64_t seed = 1) {
  Turn turn{0};
  Policy policy(mode, seed, turn);
  std::vector<size_t> counts(candidates.size());
  for (size_t i = 0; i < times; ++i) ++counts.at(policy.Decide(candidates));
  return counts;
}

constexpr RouterMode kAll[] = {
    RouterMode::kRoundRobin, RouterMode::kRandom, RouterMode::kPowerOfTwo, RouterMode::kLeastLoaded,
    RouterMode::kDirect,     RouterMode::kKv,     RouterMode::kPrefixHash};

TEST(RouterMode, KnowsItsNames) {
  for (const RouterMode mode : kAll) EXPECT_EQ(ParseRouterMode(Name(mode)), mode);
  EXPECT_EQ(Name(RouterMode::kPowerOfTwo), "power-of-two");
  for (const char* name : {"", "Random", "round_robin", "kv "}) {
    EXPECT_EQ(ParseRouterMode(name), std::nullopt) << name;
  }
}

TEST(RouterMode, LooksAtPromptsInTwoModesOnly) {
  for (const RouterMode mode : kAll) {
    const bool by_prompt = mode == RouterMode::kKv || mode == RouterMode::kPrefixHash;
    EXPECT_EQ(WantsTokens(mode), by_prompt) << Name(mode);
  }
}

TEST(Policy, DecidesForTheOnlyOneInEveryMode) {
  for (const RouterMode mode : kAll) {
    EXPECT_EQ(CountChoices(mode, CandidatesWithLoads({7}), 10), std::vector<size_t>{10});
  }
}

TEST(Policy, GoesRound) {
  Turn turn{0};
  Policy one(RouterMode::kRoundRobin, 1, turn);
  Policy other(RouterMode::kRoundRobin, 2, turn);
  const auto three = CandidatesWithLoads({9, 0, 0});
  std::vector<size_t> seen;
  for (int i = 0; i < 3; ++i) {
    seen.push_back(one.Decide(three));
    seen.push_back(other.Decide(three));
  }
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2, 0, 1, 2})) << "the turn is shared by the loops";
}

TEST(Policy, GoesRoundEvenlyWhenSeveralThreadsDecide) {
  Turn turn{0};
  const auto candidates = CandidatesWithLoads({0, 0, 0, 0});
  std::array<std::atomic<size_t>, 4> counts{};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Policy policy(RouterMode::kRoundRobin, t, turn);
      for (int i = 0; i < 1000; ++i) ++counts[policy.Decide(candidates)];
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& count : counts) EXPECT_EQ(count, 1000u);
}

TEST(Policy, RepeatsItselfExactlyWithTheSameSeedOnly) {
  for (const RouterMode mode :
       {RouterMode::kRandom, RouterMode::kPowerOfTwo, RouterMode::kLeastLoaded}) {
    std::vector<size_t> runs[3];
    for (int run = 0; run < 3; ++run) {
      Turn turn{0};
      Policy policy(mode, run == 2 ? 99 : 42, turn);
      for (int i = 0; i < 100; ++i)
        runs[run].push_back(policy.Decide(CandidatesWithLoads({1, 1, 1, 1, 1})));
    }
    EXPECT_EQ(runs[0], runs[1]) << Name(mode);
    EXPECT_NE(runs[0], runs[2]) << Name(mode);
  }
}

TEST(Policy, SpreadsEvenlyWhenAllAreEqual) {
  for (const RouterMode mode : kAll) {
    for (const size_t count : CountChoices(mode, CandidatesWithLoads({3, 3, 3, 3, 3}), 10'000)) {
      EXPECT_GT(count, 1800u) << Name(mode);
      EXPECT_LT(count, 2200u) << Name(mode);
    }
  }
}

TEST(Policy, PaysNoAttentionToLoadAtRandom) {
  for (const size_t count :
       CountChoices(RouterMode::kRandom, CandidatesWithLoads({0, 1000}), 10'000)) {
    EXPECT_GT(count, 4700u);
  }
}

TEST(Policy, TakesTheLeastLoadedAndAmongThoseAny) {
  for (const RouterMode mode :
       {RouterMode::kLeastLoaded, RouterMode::kKv, RouterMode::kPrefixHash}) {
    const auto counts = CountChoices(mode, CandidatesWithLoads({5, 2, 9, 2, 2, 3}), 9000);
    EXPECT_EQ(counts[0] + counts[2] + counts[5], 0u) << Name(mode);
    for (const size_t i : {1u, 3u, 4u}) {
      EXPECT_GT(counts[i], 2700u) << Name(mode);
      EXPECT_LT(counts[i], 3300u) << Name(mode);
    }
  }
}

// The busiest of n would only be chosen if drawn against itself, which never happens. The least
// loaded is chosen whenever it is drawn, with probability 2/n.
TEST(Policy, TakesTheBetterOfTwoDifferentOnes) {
  const auto counts =
      CountChoices(RouterMode::kPowerOfTwo, CandidatesWithLoads({0, 1, 2, 3}), 12'000);
  EXPECT_NEAR(static_cast<double>(counts[0]), 6000, 300);
  EXPECT_NEAR(static_cast<double>(counts[1]), 4000, 300);
  EXPECT_NEAR(static_cast<double>(counts[2]), 2000, 300);
  EXPECT_EQ(counts[3], 0u);
}

}  // namespace
}  // namespace fathom
