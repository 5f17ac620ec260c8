#include "router/replicas/prompt_exchange.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "router/replicas/load_exchange.h"
#include "router/routing/reservation.h"
#include "router/routing/steering.h"
#include "testing/replica_circle.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kPromptBegin{std::chrono::hours(1)};
constexpr RankLabel kHere{1, 0};

std::vector<PromptMark> MarksOf(size_t tokens, TokenId from = 100) {
  std::vector<TokenId> prompt(tokens);
  std::iota(prompt.begin(), prompt.end(), from);
  std::vector<PromptMark> marks;
  MarkPrompt(prompt, 1, marks);
  return marks;
}

struct PromptingReplica {
  PromptingReplica(ReplicaCircle& circle, const std::string& id) : seat(circle.Add(id)) {
    exchange.emplace(prompts, seat);
    seat.Invite(*exchange);
  }
  uint32_t Believed(const std::vector<PromptMark>& marks, TimePoint now) {
    std::vector<SentPrompts::Found> found;
    prompts.Find(marks, now, found);
    return found.empty() ? 0 : found.front().believed;
  }

  SentPrompts prompts{seconds(1)};
  ReplicaCircle::Seat& seat;
  std::optional<PromptExchange> exchange;
};

class PromptExchangeTest : public testing::Test {
 protected:
  void SetUp() override {
    circle_.Join(a_.seat, now_);
    circle_.Join(b_.seat, now_);
    circle_.Run(now_, 100);
  }
  void Run(int ticks) { circle_.Run(now_, ticks); }
  void RunWithLosses(int ticks) {
    circle_.Run(now_, ticks, [] { return true; });
  }

  TimePoint now_ = kPromptBegin;
  ReplicaCircle circle_;
  PromptingReplica a_{circle_, "a"};
  PromptingReplica b_{circle_, "b"};
  const std::vector<PromptMark> prompt_ = MarksOf(1000);
  SentPrompts::Sending sending_;
};

TEST_F(PromptExchangeTest, AListThatIsFullEndsNoOlderPrompt) {
  constexpr size_t kPrompts = PromptExchange::kMostNamed + 100;
  std::deque<SentPrompts::Sending> all;
  const std::vector<PromptMark> mark = MarksOf(64);
  for (size_t i = 0; i < kPrompts; ++i) {
    a_.prompts.Begin(all.emplace_back(), {1, static_cast<uint32_t>(i % 200)}, mark, now_);
    if (i % 500 == 0) Run(1);
  }
  Run(10);
  EXPECT_EQ(b_.exchange->believed(), kPrompts);
  Run(1000);
  EXPECT_EQ(b_.exchange->believed(), kPrompts) << "all wait for their first byte";
  for (SentPrompts::Sending& sending : all) a_.prompts.End(sending, now_);
}

TEST_F(PromptExchangeTest, BelievesForAsLongAsTheOriginDoes) {
  a_.prompts.Begin(sending_, kHere, prompt_, now_);
  EXPECT_EQ(b_.Believed(prompt_, now_), 0u);
  Run(1);
  EXPECT_EQ(b_.Believed(prompt_, now_), 960u);
  EXPECT_EQ(a_.exchange->believed(), 0u) << "nothing comes back";
  Run(2000);
  EXPECT_EQ(b_.Believed(prompt_, now_), 960u) << "a long prefill";
  a_.prompts.FirstByte(sending_, now_);
  Run(150);
  EXPECT_EQ(b_.Believed(prompt_, now_), 960u);
  a_.prompts.End(sending_, now_);
  Run(60);
  EXPECT_EQ(b_.Believed(prompt_, now_), 0u) << "a second after the first byte";
  EXPECT_EQ(b_.prompts.marks(), 0u);
}

TEST_F(PromptExchangeTest, ARequestThatFailsLeavesNoBelief) {
  a_.prompts.Begin(sending_, kHere, prompt_, now_);
  Run(1);
  a_.prompts.End(sending_, now_);
  Run(1);
  EXPECT_EQ(b_.Believed(prompt_, now_), 0u);
  EXPECT_EQ(b_.exchange->believed(), 0u);
}

TEST_F(PromptExchangeTest, ForgetsWhoLeaves) {
  a_.prompts.Begin(sending_, kHere, prompt_, now_);
  Run(1);
  circle_.Leave(a_.seat, now_);
  EXPECT_EQ(b_.Believed(prompt_, now_), 0u);
  EXPECT_EQ(b_.prompts.marks(), 0u);
  a_.prompts.End(sending_, now_);
}

TEST_F(PromptExchangeTest, TellsANewcomerWhatIsBelievedNow) {
  a_.prompts.Begin(sending_, kHere, prompt_, now_);
  Run(10);
  PromptingReplica c(circle_, "c");
  circle_.Join(c.seat, now_);
  Run(100);
  EXPECT_EQ(c.Believed(prompt_, now_), 960u);
  EXPECT_EQ(b_.exchange->believed(), 1u) << "heard twice, believed once";
  a_.prompts.End(sending_, now_);
  Run(1);
  EXPECT_EQ(c.Believed(prompt_, now_), 0u);
}

TEST_F(PromptExchangeTest, ALostEndIsMadeGood) {
  a_.prompts.Begin(sending_, kHere, prompt_, now_);
  Run(1);
  a_.prompts.End(sending_, now_);
  RunWithLosses(1);
  EXPECT_EQ(b_.exchange->believed(), 1u);
  Run(static_cast<int>(PromptExchange::kWhole / ReplicaCircle::kTick) + 1);
  EXPECT_EQ(b_.exchange->believed(), 0u);
}

TEST_F(PromptExchangeTest, AnOlderMessageDoesNotBringABeliefBack) {
  const auto hear = [&](uint64_t number, uint32_t believed_ms, bool whole = false) {
    ReplicaMessage message{.origin = "a", .number = number};
    SentPrompt prompt{.id = 7, .rank = kHere, .believed_ms = believed_ms, .marks = prompt_};
    message.content = SentPromptsTold{.whole = whole, .prompts = {prompt}};
    b_.exchange->Heard(message, now_);
  };
  hear(10, 60'000);
  hear(12, 500);
  hear(11, 60'000);
  ReplicaMessage late{.origin = "a", .number = 9};
  late.content = SentPromptsTold{.whole = true};
  b_.exchange->Heard(late, now_);
  EXPECT_EQ(b_.exchange->believed(), 1u) << "named after that whole";
  Run(101);
  EXPECT_EQ(b_.exchange->believed(), 0u);
  hear(13, UINT32_MAX);
  Run(12'001);
  EXPECT_EQ(b_.exchange->believed(), 0u) << "a minute at most";
}

TEST_F(PromptExchangeTest, AnOriginHasNoMoreThanItsShare) {
  Random random(3);
  uint64_t id = 0;
  for (int messages = 0; messages < 2200; ++messages) {
    ReplicaMessage message{.origin = "a", .number = 1000 + id};
    SentPrompt prompt{.id = ++id, .rank = kHere, .believed_ms = 60'000};
    for (size_t i = 0; i < PromptExchange::kMostMarks; ++i) {
      prompt.marks.push_back({.key = random.Next(), .tokens = 64});
    }
    message.content = SentPromptsTold{.prompts = {prompt}};
    b_.exchange->Heard(message, now_);
  }
  EXPECT_LE(b_.prompts.foreign(), SentPrompts::kMostForeign);
  circle_.Leave(a_.seat, now_);
  EXPECT_EQ(b_.prompts.marks(), 0u);
}

TEST_F(PromptExchangeTest, EndsWithEverythingForgotten) {
  Random random(5);
  std::deque<SentPrompts::Sending> running;
  PromptingReplica* const origins[] = {&a_, &b_};
  std::deque<PromptingReplica*> whose;
  const auto end_one = [&] {
    whose.front()->prompts.End(running.front(), now_);
    running.pop_front();
    whose.pop_front();
  };
  for (int step = 0; step < 1000; ++step) {
    for (int i = 0; i < 4; ++i) {
      PromptingReplica& origin = *origins[random.Below(2)];
      running.emplace_back();
      whose.push_back(&origin);
      origin.prompts.Begin(running.back(), {1 + random.Below(3), 0},
                           MarksOf(500 + random.Below(2000), static_cast<TokenId>(random.Below(9))),
                           now_);
      const size_t some = random.Below(running.size());
      whose[some]->prompts.FirstByte(running[some], now_);
      if (running.size() > 100) end_one();
    }
    circle_.Run(now_, 1, [&] { return random.Below(10) == 0; });
  }
  while (!running.empty()) end_one();
  Run(static_cast<int>(PromptExchange::kWhole / ReplicaCircle::kTick) + 201);
  for (PromptingReplica* replica : origins) {
    replica->prompts.ExpireAll(now_);
    EXPECT_EQ(replica->prompts.marks(), 0u);
    EXPECT_EQ(replica->prompts.foreign(), 0u);
  }
}

// A router that decides, with the same workers as the others.
class DecidingReplica {
 public:
  DecidingReplica(ReplicaCircle& circle, const std::string& id, uint64_t seed)
      : seat_(circle.Add(id)),
        world_(SteeringOptions{}, 99),
        steering_(world_, DepthsOf(nullptr), seed) {
    for (int i = 0; i < 8; ++i) {
      const auto worker = *fleet_.Add({.url = "http://w:" + std::to_string(i)});
      fleet_.SetModels(worker->id(), {.models = {"m"}, .cards = {"{}"}});
      places_.push_back({worker.get(), &worker->ranks.only()});
    }
    loads_.emplace(fleet_, world_.speed, seat_);
    prompts_.emplace(world_.sent, seat_);
    seat_.Invite(*loads_);
    seat_.Invite(*prompts_);
    circle.Join(seat_, kPromptBegin);
  }
  RankLabel Send(const std::vector<TokenId>& tokens, TimePoint now) {
    const RouteQuestion question{.tokens = tokens, .seed = kKeySeed, .weights = {}};
    const auto choice = steering_.Decide(question, places_, now, Steering::Patience::kMustDecide);
    running_.emplace_back(steering_, choice, question, Reservation::Answer::kStreamed, now);
    return choice.place.label();
  }
  void EndAll(TimePoint now) {
    for (Reservation& reservation : running_) reservation.Release(now);
  }
  const std::vector<Place>& places() const { return places_; }

 private:
  ReplicaCircle::Seat& seat_;
  Fleet fleet_{BreakerOptions{}};
  SteeringWorld world_;
  Steering steering_;
  std::vector<Place> places_;
  std::optional<LoadExchange> loads_;
  std::optional<PromptExchange> prompts_;
  std::deque<Reservation> running_;
};

TEST(PromptExchangeSteering, ABurstAtTwoReplicasGoesToOneRank) {
  ReplicaCircle circle;
  TimePoint now = kPromptBegin;
  DecidingReplica a(circle, "a", 1);
  DecidingReplica b(circle, "b", 2);
  circle.Run(now, 2);
  for (TokenId burst = 0; burst < 20; ++burst) {
    std::vector<TokenId> prompt(8000);
    std::iota(prompt.begin(), prompt.end(), burst * 10'000);
    const RankLabel first = a.Send(prompt, now);
    circle.Run(now, 1);
    EXPECT_EQ(b.Send(prompt, now), first);
    // Another prompt goes elsewhere.
    std::ranges::reverse(prompt);
    circle.Run(now, 1);
    EXPECT_NE(b.Send(prompt, now), first);
    a.EndAll(now);
    b.EndAll(now);
    circle.Run(now, 1);
  }
  for (DecidingReplica* replica : {&a, &b}) {
    for (const Place& place : replica->places()) {
      EXPECT_EQ(place.rank->load.Look(now, 1000), RankLoad::View{});
    }
  }
}

}  // namespace
}  // namespace fathom
