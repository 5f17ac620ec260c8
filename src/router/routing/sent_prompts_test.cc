#include "router/routing/sent_prompts.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <numeric>
#include <thread>

#include "base/random.h"
#include "testing/sanitizers.h"
#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RankLabel kSentRank{1, 0};
constexpr RankLabel kSiblingRank{1, 1};

std::vector<PromptMark> Marks(size_t tokens, TokenId from = 100) {
  std::vector<TokenId> prompt(tokens);
  std::iota(prompt.begin(), prompt.end(), from);
  std::vector<PromptMark> marks;
  MarkPrompt(prompt, 1, marks);
  return marks;
}

// Visits every shard, so that expired beliefs are dropped everywhere.
void VisitAll(SentPrompts& sent, TimePoint now) {
  std::vector<SentPrompts::Found> found;
  for (uint64_t key = 0; key < 1024; ++key) {
    const PromptMark mark{.key = key, .tokens = 64};
    sent.Find({&mark, 1}, now, found);
  }
}

class SentPromptsTest : public testing::Test {
 protected:
  SentPrompts::Found Find(RankLabel rank, const std::vector<PromptMark>& marks) {
    sent_.Find(marks, now_, found_);
    for (const SentPrompts::Found& found : found_) {
      if (found.rank == rank) return found;
    }
    return {};
  }
  uint32_t Believed(RankLabel rank, const std::vector<PromptMark>& marks) {
    return Find(rank, marks).believed;
  }
  uint32_t Shared(RankLabel rank, const std::vector<PromptMark>& marks) {
    return Find(rank, marks).shared;
  }

  SentPrompts sent_{seconds(1)};
  TimePoint now_ = kTestBegin;
  std::vector<SentPrompts::Found> found_;
};

TEST_F(SentPromptsTest, BelievesABurstBeforeItsFirstByte) {
  const auto prompt = Marks(1000);
  EXPECT_EQ(Believed(kSentRank, prompt), 0u);
  SentPrompts::Sending sending;
  sent_.Begin(sending, kSentRank, prompt, now_);
  EXPECT_EQ(Believed(kSentRank, prompt), prompt.back().tokens);
  EXPECT_EQ(Believed(kSiblingRank, prompt), 0u);
  EXPECT_EQ(Believed(kSentRank, Marks(1000, 101)), 0u) << "another prompt";
  now_ += seconds(59);
  EXPECT_EQ(Believed(kSentRank, prompt), prompt.back().tokens)
      << "while the prefill takes its time";
  now_ += seconds(1);
  EXPECT_EQ(Believed(kSentRank, prompt), 0u) << "it hangs";
  sent_.End(sending, now_);
}

TEST_F(SentPromptsTest, CountsWhatIsKeptOnceWhoeverLeavesFirst) {
  const auto prompt = Marks(1000);
  SentPrompts::Sending first;
  SentPrompts::Sending second;
  EXPECT_EQ(sent_.Begin(first, kSentRank, prompt, now_), 960u);
  EXPECT_EQ(sent_.Begin(second, kSentRank, Marks(2000), now_), Marks(2000).back().tokens - 960);
  EXPECT_EQ(sent_.End(first, now_), 0u) << "the other one keeps all of it";
  EXPECT_EQ(sent_.End(second, now_), Marks(2000).back().tokens);
}

TEST_F(SentPromptsTest, BelievesTheCommonPartOfPromptsThatPart) {
  const auto sent = Marks(1000);
  std::vector<TokenId> tokens(1000);
  std::iota(tokens.begin(), tokens.end(), TokenId{100});
  tokens[700] = 1;
  std::vector<PromptMark> parting;
  MarkPrompt(tokens, 1, parting);
  SentPrompts::Sending sending;
  sent_.Begin(sending, kSentRank, sent, now_);
  EXPECT_EQ(Believed(kSentRank, parting), 640u);
  EXPECT_EQ(Believed(kSentRank, Marks(300)), 256u) << "a shorter one";
  EXPECT_EQ(Believed(kSentRank, Marks(5000)), sent.back().tokens) << "a longer one";
  sent_.End(sending, now_);
}

TEST_F(SentPromptsTest, StopsBelievingAMomentAfterTheFirstByte) {
  const auto prompt = Marks(1000);
  SentPrompts::Sending sending;
  sent_.Begin(sending, kSentRank, prompt, now_);
  now_ += seconds(5);
  sent_.FirstByte(sending, now_);
  now_ += seconds(1) - Duration(1);
  EXPECT_GT(Believed(kSentRank, prompt), 0u);
  now_ += Duration(1);
  EXPECT_EQ(Believed(kSentRank, prompt), 0u);
  EXPECT_GT(Shared(kSentRank, prompt), 0u) << "but it still runs";
  sent_.End(sending, now_);
  EXPECT_EQ(Shared(kSentRank, prompt), 0u);
  EXPECT_EQ(sent_.marks(), 0u);
}

TEST_F(SentPromptsTest, BelievesBeyondTheEndOfAShortAnswer) {
  const auto prompt = Marks(1000);
  SentPrompts::Sending sending;
  sent_.Begin(sending, kSentRank, prompt, now_);
  sent_.FirstByte(sending, now_);
  now_ += milliseconds(10);
  sent_.End(sending, now_);
  EXPECT_GT(Believed(kSentRank, prompt), 0u);
  EXPECT_EQ(Shared(kSentRank, prompt), 0u);
  now_ = kTestBegin + seconds(1);
  EXPECT_EQ(Believed(kSentRank, prompt), 0u);
  EXPECT_EQ(sent_.marks(), 0u);
}

TEST_F(SentPromptsTest, BelievesNothingAfterAFailure) {
  const auto prompt = Marks(1000);
  SentPrompts::Sending failed;
  sent_.Begin(failed, kSentRank, prompt, now_);
  sent_.End(failed, now_);
  EXPECT_EQ(Believed(kSentRank, prompt), 0u);
  EXPECT_EQ(sent_.marks(), 0u);
}

TEST_F(SentPromptsTest, BelievesWhatOthersBringWhenOneFails) {
  const auto prompt = Marks(1000);
  SentPrompts::Sending failed;
  SentPrompts::Sending other;
  sent_.Begin(failed, kSentRank, prompt, now_);
  sent_.Begin(other, kSentRank, Marks(500), now_);
  sent_.End(failed, now_);
  EXPECT_EQ(Believed(kSentRank, prompt), 448u);
  sent_.End(other, now_);
  EXPECT_EQ(Believed(kSentRank, prompt), 0u);
}

TEST_F(SentPromptsTest, StopsBelievingInTimeWhereAnotherHasFailed) {
  const auto prompt = Marks(1000);
  SentPrompts::Sending failed;
  SentPrompts::Sending other;
  sent_.Begin(failed, kSentRank, prompt, now_);
  sent_.Begin(other, kSentRank, prompt, now_);
  sent_.FirstByte(other, now_);
  sent_.End(failed, now_);
  now_ += seconds(1);
  EXPECT_EQ(Believed(kSentRank, prompt), 0u);
  EXPECT_EQ(Shared(kSentRank, prompt), 960u);
  sent_.End(other, now_);
}

TEST_F(SentPromptsTest, BelievesNothingOfAFailureAfterTheSameSendingSucceeded) {
  const auto prompt = Marks(1000);
  SentPrompts::Sending sending;
  sent_.Begin(sending, kSentRank, prompt, now_);
  sent_.FirstByte(sending, now_);
  sent_.End(sending, now_);
  const auto retried = Marks(1000, 7);
  sent_.Begin(sending, kSiblingRank, retried, now_);
  sent_.End(sending, now_);
  EXPECT_EQ(Believed(kSiblingRank, retried), 0u);
  EXPECT_EQ(Believed(kSentRank, prompt), prompt.back().tokens);
  EXPECT_EQ(sent_.marks(), prompt.size()) << "nothing of the failure is left";
}

TEST_F(SentPromptsTest, SharesACommonPrefixWhileRequestsRun) {
  SentPrompts::Sending longer;
  SentPrompts::Sending shorter;
  sent_.Begin(longer, kSentRank, Marks(1000), now_);
  sent_.Begin(shorter, kSentRank, Marks(500), now_);
  EXPECT_EQ(Shared(kSentRank, Marks(2000)), 960u);
  EXPECT_EQ(Shared(kSiblingRank, Marks(2000)), 0u);
  sent_.End(longer, now_);
  EXPECT_EQ(Shared(kSentRank, Marks(2000)), 448u);
  sent_.End(shorter, now_);
  EXPECT_EQ(Shared(kSentRank, Marks(2000)), 0u);
}

TEST_F(SentPromptsTest, TellsAllRanksApart) {
  const auto prompt = Marks(1000);
  SentPrompts::Sending one;
  SentPrompts::Sending two;
  sent_.Begin(one, kSentRank, prompt, now_);
  sent_.Begin(two, kSiblingRank, Marks(500), now_);
  sent_.Find(prompt, now_, found_);
  EXPECT_EQ(found_.size(), 2u);
  EXPECT_EQ(Believed(kSentRank, prompt), 960u);
  EXPECT_EQ(Believed(kSiblingRank, prompt), 448u);
  sent_.End(one, now_);
  sent_.End(two, now_);
}

TEST_F(SentPromptsTest, TakesRepeatedCallsOnce) {
  const auto prompt = Marks(200);
  SentPrompts::Sending sending;
  SentPrompts::Sending other;
  sent_.Begin(sending, kSentRank, prompt, now_);
  sent_.Begin(other, kSentRank, prompt, now_);
  for (int i = 0; i < 3; ++i) sent_.FirstByte(sending, now_);
  for (int i = 0; i < 3; ++i) sent_.End(sending, now_);
  sent_.FirstByte(sending, now_);
  now_ += seconds(2);
  EXPECT_EQ(Believed(kSentRank, prompt), 192u) << "the other one is still on its way";
  sent_.End(other, now_);
  EXPECT_EQ(sent_.marks(), 0u);
}

TEST_F(SentPromptsTest, RemembersNothingOfPromptsWithoutAMark) {
  SentPrompts::Sending sending;
  sent_.Begin(sending, kSentRank, {}, now_);
  sent_.FirstByte(sending, now_);
  sent_.End(sending, now_);
  sent_.Find({}, now_, found_);
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(sent_.marks(), 0u);
}

TEST_F(SentPromptsTest, RefusesAndCountsWhatIsTooMuch) {
  SentPrompts::Sending small;
  sent_.Begin(small, kSentRank, Marks(64), now_);
  const std::vector<PromptMark> huge(SentPrompts::kMostMarks, PromptMark{.key = 5, .tokens = 64});
  SentPrompts::Sending refused;
  sent_.Begin(refused, kSentRank, huge, now_);
  EXPECT_EQ(sent_.forgotten(), 1u);
  EXPECT_EQ(sent_.marks(), 1u);
  EXPECT_EQ(Believed(kSentRank, {huge[0]}), 0u);
  sent_.FirstByte(refused, now_);
  sent_.End(refused, now_);
  EXPECT_EQ(sent_.marks(), 1u);
  sent_.End(small, now_);
  EXPECT_EQ(sent_.marks(), 0u);
  EXPECT_EQ(sent_.forgotten(), 1u);
}

// Groups of prompts with shared beginnings are sent, answered, failed and ended at random.
void LiveOn(SentPrompts& sent, uint64_t seed, int times) {
  Random random(seed);
  std::vector<std::unique_ptr<SentPrompts::Sending>> live;
  std::vector<SentPrompts::Found> found;
  TimePoint now = kTestBegin;
  for (int i = 0; i < times || !live.empty(); ++i) {
    now += milliseconds(random.Below(20));
    const uint64_t act = random.Below(4);
    const auto marks = Marks(random.Below(2000), static_cast<TokenId>(random.Below(4)));
    if (i < times && act == 0) {
      live.push_back(std::make_unique<SentPrompts::Sending>());
      sent.Begin(*live.back(), {random.Below(3), 0}, marks, now);
    } else if (act == 1) {
      sent.Find(marks, now, found);
      for (const SentPrompts::Found& each : found) ASSERT_LE(each.believed, 2000u);
    } else if (!live.empty()) {
      const size_t who = random.Below(live.size());
      if (act == 2) {
        sent.FirstByte(*live[who], now);
        continue;
      }
      sent.End(*live[who], now);
      live.erase(live.begin() + static_cast<int64_t>(who));
    }
  }
}

TEST(SentPromptsLife, RemembersNothingWhenAllIsOver) {
  SentPrompts sent(seconds(1));
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] { LiveOn(sent, seed, kSanitized ? 2000 : 20'000); });
  }
  for (std::thread& thread : threads) thread.join();
  VisitAll(sent, kTestBegin + std::chrono::hours(10));
  EXPECT_EQ(sent.marks(), 0u);
  EXPECT_EQ(sent.forgotten(), 0u);
}

// --- other replicas ------------------------------------------------------------------------------

TEST_F(SentPromptsTest, HasNewsOnlyIfSomebodyListens) {
  std::vector<SentPrompts::News> news;
  SentPrompts::Sending unheard;
  sent_.Begin(unheard, kSentRank, Marks(1000), now_);
  sent_.TakeNews(news);
  EXPECT_TRUE(news.empty());
  sent_.Listen();
  sent_.FirstByte(unheard, now_);
  sent_.End(unheard, now_);
  sent_.TakeNews(news);
  EXPECT_TRUE(news.empty()) << "nobody knows the prompt";
}

TEST_F(SentPromptsTest, TellsHowLongAPromptIsBelieved) {
  sent_.Listen();
  const auto prompt = Marks(1000);
  SentPrompts::Sending good;
  SentPrompts::Sending failed;
  sent_.Begin(good, kSentRank, prompt, now_);
  sent_.Begin(failed, kSiblingRank, prompt, now_);
  std::vector<SentPrompts::News> news;
  sent_.TakeNews(news);
  ASSERT_EQ(news.size(), 2u);
  EXPECT_NE(news[0].id, news[1].id);
  EXPECT_EQ(news[0].rank, kSentRank);
  EXPECT_EQ(news[0].marks, prompt);
  EXPECT_EQ(news[0].until, now_ + seconds(60));
  const uint64_t of_good = news[0].id;
  const uint64_t of_failed = news[1].id;
  news.clear();
  now_ += seconds(2);
  sent_.FirstByte(good, now_);
  sent_.End(failed, now_);
  sent_.End(good, now_);
  sent_.TakeNews(news);
  ASSERT_EQ(news.size(), 2u) << "the end says nothing that the first byte has not said";
  EXPECT_EQ(news[0].id, of_good);
  EXPECT_EQ(news[0].until, now_ + seconds(1));
  EXPECT_TRUE(news[0].marks.empty());
  EXPECT_EQ(news[1].id, of_failed);
  EXPECT_LE(news[1].until, now_);
}

TEST_F(SentPromptsTest, DropsTheOldestNewsThatNobodyTakes) {
  sent_.Listen();
  for (int i = 0; i < 3000; ++i) {
    SentPrompts::Sending sending;
    sent_.Begin(sending, kSentRank, Marks(1000), now_);
    sent_.End(sending, now_);
  }
  SentPrompts::Sending last;
  sent_.Begin(last, kSiblingRank, Marks(1000), now_);
  std::vector<SentPrompts::News> news;
  sent_.TakeNews(news);
  EXPECT_EQ(news.size(), 1024u);
  EXPECT_EQ(news.back().rank, kSiblingRank);
  Random random(1);
  size_t marks = 0;
  std::vector<PromptMark> any(100);
  std::deque<SentPrompts::Sending> many(SentPrompts::kMostNewsMarks / 80);
  for (SentPrompts::Sending& sending : many) {
    for (PromptMark& mark : any) mark = {.key = random.Next(), .tokens = 64};
    sent_.Begin(sending, kSentRank, any, now_);
  }
  news.clear();
  sent_.TakeNews(news);
  for (const SentPrompts::News& one : news) marks += one.marks.size();
  EXPECT_LE(marks, SentPrompts::kMostNewsMarks + 64 * 200);
  EXPECT_GT(marks, SentPrompts::kMostNewsMarks / 2);
  for (SentPrompts::Sending& sending : many) sent_.End(sending, now_);
  sent_.End(last, now_);
}

TEST_F(SentPromptsTest, BelievesWhatOtherReplicasHaveSent) {
  const auto prompt = Marks(1000);
  ASSERT_TRUE(sent_.Believe(kSentRank, prompt, now_));
  EXPECT_EQ(Believed(kSentRank, prompt), 960u);
  EXPECT_EQ(Shared(kSentRank, prompt), 0u);
  SentPrompts::Sending own;
  EXPECT_EQ(sent_.Begin(own, kSentRank, prompt, now_), 960u) << "no request of ours held it there";
  ASSERT_TRUE(sent_.Believe(kSentRank, Marks(2000), now_));
  sent_.Disbelieve(kSentRank, prompt);
  EXPECT_EQ(sent_.End(own, now_), 960u);
  EXPECT_EQ(Believed(kSentRank, prompt), 960u) << "of the longer one";
  sent_.Disbelieve(kSentRank, Marks(2000));
  EXPECT_EQ(Believed(kSentRank, prompt), 0u);
  EXPECT_EQ(sent_.marks(), 0u);
  EXPECT_EQ(sent_.foreign(), 0u);
}

TEST_F(SentPromptsTest, OthersCannotPushOutOurOwn) {
  const RankLabel other{2, 0};
  std::vector<std::vector<PromptMark>> believed;
  uint64_t key = 1;
  const auto next = [&] {
    std::vector<PromptMark> marks(512);
    for (PromptMark& mark : marks) mark = {.key = key++, .tokens = 64};
    return marks;
  };
  for (auto marks = next(); sent_.Believe(other, marks, now_); marks = next()) {
    believed.push_back(std::move(marks));
  }
  EXPECT_EQ(sent_.foreign(), SentPrompts::kMostForeign);
  EXPECT_EQ(sent_.marks(), SentPrompts::kMostForeign);
  std::deque<SentPrompts::Sending> own(SentPrompts::kMostMarks / 512);
  for (SentPrompts::Sending& sending : own)
    ASSERT_GT(sent_.Begin(sending, kSentRank, next(), now_), 0u);
  SentPrompts::Sending beyond;
  EXPECT_EQ(sent_.Begin(beyond, kSentRank, next(), now_), 0u);
  EXPECT_EQ(sent_.marks(), SentPrompts::kMostMarks + SentPrompts::kMostForeign);
  for (SentPrompts::Sending& sending : own) sent_.End(sending, now_);
  for (const auto& marks : believed) sent_.Disbelieve(other, marks);
  EXPECT_EQ(sent_.marks(), 0u);
}

}  // namespace
}  // namespace fathom
