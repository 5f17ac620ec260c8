#include "router/routing/reservation.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "testing/sanitizers.h"
#include "testing/test_clock.h"
#include "testing/token_run.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Answer = Reservation::Answer;

// Workers with two ranks each.
struct Ranks {
  explicit Ranks(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      WorkerSpec spec;
      spec.url = "http://worker" + std::to_string(i);
      Worker& worker = *workers.emplace_back(std::make_unique<Worker>(spec, BreakerOptions{}));
      for (const uint32_t rank : {0, 1}) worker.ranks.Know(rank);
      worker.ranks.ForEach([&](Rank& rank) { places.push_back({&worker, &rank}); });
    }
  }
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<Place> places;
};

// Visits every shard, so that expired beliefs are dropped everywhere.
size_t MarksAfter(SentPrompts& sent, TimePoint now) {
  std::vector<SentPrompts::Found> found;
  for (uint64_t key = 0; key < 1024; ++key) {
    const PromptMark mark{.key = key, .tokens = 64};
    sent.Find({&mark, 1}, now, found);
  }
  return sent.marks();
}

class ReservationTest : public testing::Test {
 protected:
  std::unique_ptr<Reservation> Book(const std::vector<TokenId>& tokens,
                                    Answer answer = Answer::kStreamed) {
    const RouteQuestion question{.tokens = tokens, .seed = kKeySeed, .weights = {}};
    choice_ = steering_.Decide(question, std::span(ranks_.places).first(1), now_,
                               Steering::Patience::kMustDecide);
    return std::make_unique<Reservation>(steering_, choice_, question, answer, now_);
  }
  RankLoad::View Look() { return ranks_.places[0].rank->load.Look(now_, world_.speed.unit()); }

  Ranks ranks_{1};
  SteeringWorld world_{{}, 7};
  Steering steering_{world_, DepthsOf(nullptr), 1};
  Steering::Choice choice_;
  TimePoint now_ = kTestBegin;
};

TEST_F(ReservationTest, KeepsASharedPrefixOnTheBooksUntilTheLastOneLeaves) {
  auto first = Book(TokenRun(1000));
  auto second = Book(TokenRun(1000));
  EXPECT_EQ(Look().context, 1000u + 40)
      << "what lies behind the last mark is not known to be shared";
  first.reset();
  EXPECT_EQ(Look().context, 1000u);
  second.reset();
  EXPECT_EQ(Look(), RankLoad::View{});
}

TEST_F(ReservationTest, BooksTheWorkUntilTheFirstByteAndTheContextUntilTheEnd) {
  const auto booked = Book(TokenRun(1000));
  EXPECT_EQ(Look().queued, PrefillWork(1000, 0));
  EXPECT_EQ(Look().context, 1000u);
  booked->FirstByte(now_);
  EXPECT_EQ(Look(), (RankLoad::View{.context = 1000, .requests = 1}));
  booked->Grow(10);
  EXPECT_EQ(Look().context, 1010u);
  booked->Release(now_);
  EXPECT_EQ(Look(), RankLoad::View{});
}

TEST_F(ReservationTest, CountsACommonPrefixOnce) {
  const auto one = Book(TokenRun(1000));
  const auto two = Book(TokenRun(1000));
  EXPECT_EQ(Look().context, 1000u + 40u) << "but for what is behind the last mark";
  EXPECT_LT(Look().queued, 2 * PrefillWork(1000, 0));
}

TEST_F(ReservationTest, EndsWithItself) {
  Book(TokenRun(1000)).reset();
  EXPECT_EQ(Look(), RankLoad::View{});
  EXPECT_EQ(world_.sent.marks(), 0u);
}

TEST_F(ReservationTest, ReleasesOnce) {
  const auto one = Book(TokenRun(1000));
  auto two = Book(TokenRun(500, 7));
  two->Release(now_);
  two->Release(now_);
  two->FirstByte(now_);
  two->Grow(5);
  two.reset();
  EXPECT_EQ(Look().requests, 1u);
  EXPECT_EQ(Look().context, 1000u);
}

TEST_F(ReservationTest, LearnsTheSpeedFromStreamsOnly) {
  const double before = world_.speed.unit();
  const auto whole = Book(TokenRun(1000), Answer::kWhole);
  now_ += seconds(5);
  whole->FirstByte(now_);
  EXPECT_EQ(world_.speed.unit(), before);
  whole->Release(now_);
  const auto streamed = Book(TokenRun(1000));
  now_ += seconds(5);
  streamed->FirstByte(now_);
  const double after = world_.speed.unit();
  EXPECT_GT(after, before);
  now_ += seconds(5);
  streamed->FirstByte(now_);
  EXPECT_EQ(world_.speed.unit(), after) << "there is one first byte";
}

TEST_F(ReservationTest, LearnsFromAFailureNeitherSpeedNorDepth) {
  const double before = world_.speed.unit();
  const auto prompt = TokenRun(1000);
  const auto failed = Book(prompt);
  now_ += seconds(5);
  failed->Release(now_);
  EXPECT_EQ(world_.speed.unit(), before);
  const auto next = Book(prompt);
  EXPECT_EQ(choice_.decision->rank().believed, 0u);
}

TEST_F(ReservationTest, LearnsTheSpeedFromWorkThatWasAheadToo) {
  const double usual = world_.speed.unit();
  const auto first = Book(TokenRun(8000));
  const auto second = Book(TokenRun(1000, 50'000));
  const double work = PrefillWork(8000, 0) + PrefillWork(1000, 0);
  now_ += Duration(static_cast<int64_t>(work * usual));
  second->FirstByte(now_);
  EXPECT_NEAR(world_.speed.unit() / usual, 1, 1e-6);
}

// First tokens of an engine that is slow beside the fleet.
TEST_F(ReservationTest, LearnsHowSlowARankIs) {
  Rank& rank = *ranks_.places[0].rank;
  for (int i = 0; i < 100; ++i) world_.speed.Observe(1000, milliseconds(10));
  for (int i = 0; i < 30; ++i) {
    const auto one = Book(TokenRun(1000, static_cast<TokenId>(10'000 * (i + 1))));
    now_ += milliseconds(200);
    one->FirstByte(now_);
    for (int others = 0; others < 20; ++others) world_.speed.Observe(1000, milliseconds(10));
  }
  EXPECT_GT(rank.SlownessAt(now_), 2);
  rank.recoveries.fetch_add(1);
  EXPECT_EQ(rank.SlownessAt(now_), 1) << "it belongs to the process";
}

// They were sent before the engine was stopped.
TEST_F(ReservationTest, LearnsNoSpeedFromRequestsOfAnEarlierProcess) {
  Rank& rank = *ranks_.places[0].rank;
  const double before = world_.speed.unit();
  std::vector<std::unique_ptr<Reservation>> waiting;
  for (uint32_t i = 0; i < 40; ++i) waiting.push_back(Book(TokenRun(1000, 10'000 * i)));
  now_ += seconds(60);
  rank.recoveries.fetch_add(1);
  for (const auto& one : waiting) one->FirstByte(now_);
  EXPECT_EQ(rank.SlownessAt(now_), 1);
  EXPECT_EQ(world_.speed.unit(), before);
}

// Random lives of requests: they are sent, answered and grow; they end, fail, are cancelled or are
// retried.
class Lives {
 public:
  Lives(SteeringWorld& world, const Ranks& ranks, uint64_t seed)
      : world_(world),
        ranks_(ranks),
        steering_(world, DepthsOf(world.approximate ? &world.approximate->index() : nullptr), seed),
        random_(seed) {}

  void Run(int requests) {
    while (requests > 0 || !live_.empty()) {
      now_ += milliseconds(random_.Below(4));
      if (requests > 0 && (live_.empty() || random_.Below(4) == 0)) {
        --requests;
        Send();
      } else {
        Act(random_.Below(live_.size()));
      }
    }
  }

 private:
  struct Request {
    std::vector<TokenId> tokens;
    std::unique_ptr<Reservation> booked;
  };

  void Send() {
    const bool known = random_.Below(8) != 0;
    const size_t length = random_.Below(known ? 3000 : 1);
    live_.push_back({TokenRun(length, static_cast<TokenId>(random_.Below(5))), nullptr});
    Book(live_.back());
  }
  void Book(Request& request) {
    const RouteQuestion question{
        .tokens = request.tokens, .seed = kKeySeed, .prompt_tokens = 500, .weights = {}};
    const size_t first = random_.Below(ranks_.places.size() / 2);
    const auto choice = steering_.Decide(question, std::span(ranks_.places).subspan(first), now_,
                                         Steering::Patience::kMustDecide);
    const Answer answer = random_.Below(3) == 0 ? Answer::kWhole : Answer::kStreamed;
    request.booked.reset();
    request.booked = std::make_unique<Reservation>(steering_, choice, question, answer, now_);
    world_.ring.Keep(*choice.decision);
  }
  void Act(size_t who) {
    Request& request = live_[who];
    switch (random_.Below(6)) {
      case 0:
      case 1:
        return request.booked->FirstByte(now_);
      case 2:
        return request.booked->Grow(random_.Below(16));
      case 3:  // retried
        request.booked->Release(now_);
        return Book(request);
      case 4:  // ends or fails, with or without a first byte
        request.booked->Release(now_);
        break;
      default:  // the client disconnects
        break;
    }
    std::swap(request, live_.back());
    live_.pop_back();
  }

  SteeringWorld& world_;
  const Ranks& ranks_;
  Steering steering_;
  Random random_;
  std::vector<Request> live_;
  TimePoint now_ = kTestBegin;
};

void LiveAndCheck(const SteeringOptions& options) {
  SteeringWorld world(options, 7);
  Ranks ranks(3);
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] { Lives(world, ranks, seed).Run(kSanitized ? 500 : 5000); });
  }
  for (std::thread& thread : threads) thread.join();
  const TimePoint later = kTestBegin + std::chrono::hours(10);
  for (const Place& place : ranks.places) {
    EXPECT_EQ(place.rank->load.Look(later, world.speed.unit()), RankLoad::View{});
  }
  EXPECT_EQ(MarksAfter(world.sent, later), 0u);
  EXPECT_EQ(world.sent.forgotten(), 0u);
  if (world.approximate) {
    world.approximate->Expire(later);
    EXPECT_EQ(world.approximate->index().held(), 0u);
  }
  for (const Decision& kept : world.ring.Latest(1000)) {
    Decision replayed = kept;
    Decide(replayed);
    ASSERT_EQ(replayed.chosen, kept.chosen);
    ASSERT_EQ(replayed.prices, kept.prices);
    ASSERT_EQ(replayed.margin, kept.margin);
  }
}

TEST(ReservationLife, LeavesExactlyNothingBehind) { LiveAndCheck({}); }

TEST(ReservationLife, LeavesExactlyNothingBehindWhenDepthsAreGuessed) {
  SteeringOptions options;
  options.events = false;
  LiveAndCheck(options);
}

TEST(ReservationLife, LeavesExactlyNothingBehindByPrefixHash) {
  SteeringOptions options;
  options.mode = RouterMode::kPrefixHash;
  LiveAndCheck(options);
}

}  // namespace
}  // namespace fathom
