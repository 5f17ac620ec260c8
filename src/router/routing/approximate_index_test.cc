#include "router/routing/approximate_index.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "testing/sanitizers.h"
#include "testing/token_run.h"

namespace fathom {
namespace {

using std::chrono::seconds;

constexpr RankLabel kOne{1, 0};
constexpr RankLabel kTwo{2, 3};
constexpr size_t kPlenty = size_t{64} << 20;

class ApproximateIndexTest : public testing::Test {
 protected:
  void Send(RankLabel rank, const std::vector<TokenId>& tokens, uint64_t seed = kKeySeed) {
    index_.Send(rank, tokens, seed, now_);
  }
  size_t DepthOf(RankLabel rank, const std::vector<TokenId>& tokens, uint64_t seed = kKeySeed) {
    for (const CacheReader::Found& found : reader_.Match(tokens, seed)) {
      if (found.rank == rank) return found.tokens[0];
    }
    return 0;
  }
  void Pass(Duration time) {
    now_ += time;
    index_.Expire(now_);
  }

  ApproximateIndex index_{seconds(10), kPlenty, 1};
  CacheReader reader_{index_.index()};
  TimePoint now_{seconds(100)};
};

TEST_F(ApproximateIndexTest, FindsWhatWasSentWhereItWasSent) {
  const auto prompt = TokenRun(1000);
  Send(kOne, prompt);
  EXPECT_EQ(DepthOf(kOne, prompt), 960u) << "whole blocks";
  EXPECT_EQ(DepthOf(kTwo, prompt), 0u);
  EXPECT_EQ(DepthOf(kOne, prompt, 99), 0u) << "another namespace";
  auto longer = TokenRun(2000);
  EXPECT_EQ(DepthOf(kOne, longer), 960u);
  longer[130] = 1;
  EXPECT_EQ(DepthOf(kOne, longer), 128u);
}

TEST_F(ApproximateIndexTest, ForgetsWhatWasSentAfterTheTtl) {
  const auto prompt = TokenRun(1000);
  Send(kOne, prompt);
  Pass(seconds(10) - Duration(1));
  EXPECT_EQ(DepthOf(kOne, prompt), 960u);
  Pass(Duration(1));
  EXPECT_EQ(DepthOf(kOne, prompt), 0u);
  EXPECT_EQ(index_.index().held(), 0u);
}

TEST_F(ApproximateIndexTest, TakesBackWhatNeverGotThere) {
  const auto prompt = TokenRun(1000);
  const uint64_t lost = index_.Send(kOne, prompt, kKeySeed, now_);
  Send(kOne, TokenRun(500));
  index_.Withdraw(lost);
  EXPECT_EQ(DepthOf(kOne, prompt), 448u) << "what another one brought stays";
  Pass(seconds(10));
  EXPECT_EQ(index_.index().held(), 0u);
  index_.Withdraw(lost);
}

TEST_F(ApproximateIndexTest, ForgetsOldPromptsWhenOthersAreSent) {
  const auto prompt = TokenRun(1000);
  Send(kOne, prompt);
  now_ += seconds(10);
  Send(kTwo, TokenRun(640, 5000));
  EXPECT_EQ(DepthOf(kOne, prompt), 0u);
  EXPECT_EQ(index_.index().held(), 10u);
}

TEST_F(ApproximateIndexTest, CountsCopiesSoThatARepeatedPromptLivesOn) {
  const auto shorter = TokenRun(640);
  const auto longer = TokenRun(1280);
  Send(kOne, longer);
  Pass(seconds(6));
  Send(kOne, shorter);
  Pass(seconds(6));
  EXPECT_EQ(DepthOf(kOne, longer), 640u) << "only what was sent again";
  Pass(seconds(6));
  EXPECT_EQ(DepthOf(kOne, longer), 0u);
  EXPECT_EQ(index_.index().held(), 0u);
}

TEST_F(ApproximateIndexTest, IgnoresPromptsShorterThanABlock) {
  Send(kOne, TokenRun(ApproximateIndex::kBlock - 1));
  Send(kOne, {});
  EXPECT_EQ(index_.index().held(), 0u);
}

TEST_F(ApproximateIndexTest, GivesItsMemoryBack) {
  Random random(1);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) {
      const auto worker = random.Below(5);
      Send({worker, 0}, TokenRun(64 + random.Below(3000), static_cast<TokenId>(random.Below(20))));
    }
    EXPECT_GT(index_.index().held(), 0u);
    Pass(seconds(10));
    EXPECT_EQ(index_.index().held(), 0u);
    EXPECT_EQ(index_.index().at(0).ranks(), 0u);
  }
}

// Overload: old prompts are forgotten before their TTL.
TEST(ApproximateIndex, StaysWithinItsMemory) {
  constexpr size_t kLittle = size_t{1} << 20;
  for (const TokenId length : {64u, 6400u}) {
    ApproximateIndex index(seconds(1000), kLittle, 1);
    CacheReader reader(index.index());
    const TimePoint now{seconds(100)};
    std::vector<TokenId> last;
    for (TokenId i = 0; i < 500'000 / length; ++i) {
      last = TokenRun(length, i * length);
      index.Send(kOne, last, kKeySeed, now);
      ASSERT_LE(index.index().memory().bytes(), kLittle);
    }
    EXPECT_GT(index.index().held(), 0u);
    EXPECT_LE(index.index().held() / (length / 64), kLittle / 8 / 48);
    last.push_back(1);
    EXPECT_EQ(reader.Match(last, kKeySeed)[0].tokens[0], length) << "the newest is there";
    index.Expire(now + seconds(1000));
    EXPECT_EQ(index.index().held(), 0u);
  }
}

TEST(ApproximateIndex, IgnoresAPromptThatCannotFit) {
  ApproximateIndex index(seconds(10), 8 * 1024, 1);
  index.Send(kOne, TokenRun(64 * 200), kKeySeed, TimePoint{});
  EXPECT_EQ(index.index().held(), 0u);
}

TEST(ApproximateIndex, IsFedAndReadByManyThreads) {
  ApproximateIndex index(std::chrono::milliseconds(10), kPlenty, 1);
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      Random random(seed);
      CacheReader reader(index.index());
      TimePoint now{seconds(100)};
      for (int i = 0; i < (kSanitized ? 200 : 2000); ++i) {
        now += std::chrono::milliseconds(1);
        const auto prompt = TokenRun(random.Below(1000), static_cast<TokenId>(random.Below(5)));
        index.Expire(now);
        for (const auto& found : reader.Match(prompt, kKeySeed)) {
          ASSERT_LE(found.tokens[0], prompt.size());
        }
        index.Send({random.Below(3), 0}, prompt, kKeySeed, now);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  index.Expire(TimePoint{seconds(1000)});
  EXPECT_EQ(index.index().held(), 0u);
}

TEST_F(ApproximateIndexTest, ForgetsWhatIsOlderThanAnEvictedPrompt) {
  const auto oldest = TokenRun(640, 1000);
  const auto old = TokenRun(640, 5000);
  const auto newer = TokenRun(640, 9000);
  for (const auto* prompt : {&oldest, &old, &newer}) Send(kOne, *prompt);
  Send(kTwo, oldest);
  const uint64_t again = index_.Send(kOne, old, kKeySeed, now_);
  index_.Evicted(again, 128);
  EXPECT_EQ(DepthOf(kOne, oldest), 0u);
  EXPECT_EQ(DepthOf(kOne, old), 640u - 64) << "it has just been computed again";
  EXPECT_EQ(DepthOf(kOne, newer), 640u - 64);
  EXPECT_EQ(DepthOf(kTwo, oldest), 640u - 64) << "another rank";
  Pass(seconds(10));
  EXPECT_EQ(index_.index().held(), 0u);
}

TEST_F(ApproximateIndexTest, KeepsWhatOnlySharesThePartThatWasKept) {
  const auto old = TokenRun(640, 5000);
  auto newer = old;
  std::fill(newer.begin() + 128, newer.end(), 7u);
  Send(kOne, old);
  Send(kOne, newer);
  index_.Evicted(index_.Send(kOne, old, kKeySeed, now_), 100);
  EXPECT_EQ(DepthOf(kOne, newer), 640u - 64) << "the end of a block is not a loss";
}

TEST_F(ApproximateIndexTest, ForgetsNothingOfAPromptThatWasNeverThere) {
  const auto other = TokenRun(640, 1000);
  Send(kOne, other);
  const uint64_t first = index_.Send(kOne, TokenRun(640, 5000), kKeySeed, now_);
  index_.Evicted(first, 0);
  EXPECT_GT(DepthOf(kOne, other), 0u);
  index_.Evicted(first, 100000);
  Pass(seconds(10));
  index_.Evicted(first, 0);
}

TEST_F(ApproximateIndexTest, ForgetsAtMostSoMuchAtOnce) {
  const auto prompt = TokenRun(64 * 1024);
  for (TokenId i = 0; i < 20; ++i) Send(kOne, TokenRun(64 * 1024, 100000 * (i + 1)));
  Send(kOne, prompt);
  const size_t before = index_.index().held();
  index_.Evicted(index_.Send(kOne, prompt, kKeySeed, now_), 0);
  const size_t after = index_.index().held();
  EXPECT_LT(after, before);
  EXPECT_GE(after + ApproximateIndex::kMostForgotten + 1024, before);
}

}  // namespace
}  // namespace fathom
