#include "router/replicas/session_exchange.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "testing/replica_circle.h"

namespace fathom {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr TimePoint kSessionBegin{hours(1)};

struct BoundReplica {
  BoundReplica(ReplicaCircle& circle, const std::string& id)
      : seat(circle.Add(id)), exchange(sessions, pins, seat) {
    seat.Invite(exchange);
  }
  SessionAffinity sessions{minutes(8), 7};
  ResponsePins pins{7};
  ReplicaCircle::Seat& seat;
  SessionExchange exchange;
};

class SessionExchangeTest : public testing::Test {
 protected:
  void SetUp() override {
    for (BoundReplica* replica : {&a_, &b_, &c_}) circle_.Join(replica->seat, now_);
    Run(seconds(3));
  }
  void Run(Duration duration) {
    circle_.Run(now_, static_cast<int>(duration / ReplicaCircle::kTick));
  }
  void Tick() { circle_.Run(now_, 1); }

  TimePoint now_ = kSessionBegin;
  ReplicaCircle circle_;
  BoundReplica a_{circle_, "a"};
  BoundReplica b_{circle_, "b"};
  BoundReplica c_{circle_, "c"};
};

TEST_F(SessionExchangeTest, ASessionFollowsToAllReplicas) {
  a_.sessions.Remember("s", WorkerId(1), now_);
  Tick();
  EXPECT_EQ(b_.sessions.Find("s", now_), WorkerId(1));
  EXPECT_EQ(c_.sessions.Find("s", now_), WorkerId(1));
  b_.sessions.Remember("s", WorkerId(9), now_);
  Tick();
  for (BoundReplica* replica : {&a_, &b_, &c_}) {
    EXPECT_EQ(replica->sessions.Find("s", now_), WorkerId(9)) << "bound anew";
  }
  a_.sessions.Remember("s", WorkerId(3), now_);
  Tick();
  EXPECT_EQ(c_.sessions.Find("s", now_), WorkerId(3));
}

TEST_F(SessionExchangeTest, AllAgreeWhoeverBindsAtTheSameTime) {
  a_.sessions.Remember("s", WorkerId(5), now_);
  b_.sessions.Remember("s", WorkerId(4), now_);
  c_.sessions.Remember("s", WorkerId(6), now_);
  Tick();
  for (BoundReplica* replica : {&a_, &b_, &c_}) {
    EXPECT_EQ(replica->sessions.Find("s", now_), WorkerId(4));
  }
}

TEST_F(SessionExchangeTest, NothingIsToldOn) {
  a_.sessions.Remember("s", WorkerId(1), now_);
  a_.pins.Remember("r", WorkerId(1), now_);
  Tick();
  const uint64_t before = b_.seat.messages;
  b_.sessions.Remember("s", WorkerId(1), now_);
  EXPECT_TRUE(b_.pins.Find("r", now_));
  Run(seconds(10));
  EXPECT_EQ(b_.seat.messages, before);
}

TEST_F(SessionExchangeTest, ASessionThatIsUsedHereDoesNotExpireElsewhere) {
  a_.sessions.Remember("used", WorkerId(1), now_);
  a_.sessions.Remember("left", WorkerId(1), now_);
  const uint64_t before = a_.seat.messages;
  for (int i = 0; i < 20; ++i) {
    Run(seconds(30));
    a_.sessions.Remember("used", WorkerId(1), now_);
  }
  Tick();
  EXPECT_LE(a_.seat.messages - before, 12u) << "an eighth of eight minutes";
  EXPECT_EQ(b_.sessions.Find("used", now_), WorkerId(1));
  EXPECT_FALSE(b_.sessions.Find("left", now_));
}

TEST_F(SessionExchangeTest, AResponseIsFoundByAllReplicas) {
  a_.pins.Remember("r", WorkerId(2), now_);
  Tick();
  EXPECT_EQ(b_.pins.Find("r", now_), (ResponsePins::Pin{WorkerId(2)}));
  a_.pins.SetContext("r", {WorkerId(2), 3, 1234});
  Tick();
  EXPECT_EQ(b_.pins.Find("r", now_), (ResponsePins::Pin{WorkerId(2), 3, 1234}));
}

TEST_F(SessionExchangeTest, NoReplicaCanMoveAResponse) {
  a_.pins.Remember("r", WorkerId(2), now_);
  Tick();
  b_.pins.Forget("r", WorkerId(2));
  b_.pins.Remember("r", WorkerId(7), now_);
  Tick();
  EXPECT_EQ(a_.pins.Find("r", now_)->worker, WorkerId(2)) << "first come";
}

TEST_F(SessionExchangeTest, ANewcomerIsToldEverythingByOne) {
  constexpr size_t kMany = 30'000;
  for (size_t i = 0; i < kMany; ++i) {
    a_.sessions.Remember("s" + std::to_string(i), WorkerId(i % 100), now_);
    a_.pins.Remember("r" + std::to_string(i), WorkerId(i % 100), now_);
  }
  Run(seconds(3));
  EXPECT_EQ(b_.sessions.size(), kMany);
  const uint64_t before = a_.seat.bytes + b_.seat.bytes + c_.seat.bytes;
  BoundReplica d(circle_, "d");
  circle_.Join(d.seat, now_);
  const TimePoint joined = now_;
  while (d.sessions.size() + d.pins.size() < 2 * kMany && now_ - joined < seconds(10)) {
    const uint64_t sent = a_.seat.bytes + b_.seat.bytes + c_.seat.bytes;
    Tick();
    EXPECT_LE(a_.seat.bytes + b_.seat.bytes + c_.seat.bytes - sent, 64u << 10);
  }
  EXPECT_EQ(d.sessions.size(), kMany);
  EXPECT_EQ(d.pins.size(), kMany);
  EXPECT_LT(a_.seat.bytes + b_.seat.bytes + c_.seat.bytes - before, kMany * 80) << "once";
  EXPECT_EQ(d.sessions.Find("s1234", now_), WorkerId(34));
  Run(seconds(5));
  EXPECT_EQ(d.seat.messages, 0u) << "it has nothing to say";
}

TEST(SessionExchangeStart, TellsWhatItBoundBeforeItFoundTheOthers) {
  ReplicaCircle circle;
  TimePoint now = kSessionBegin;
  BoundReplica early(circle, "early");
  BoundReplica late(circle, "late");
  early.exchange.Tick(now);
  early.sessions.Remember("s", WorkerId(1), now);
  for (int i = 0; i < 100; ++i) early.exchange.Tick(now += ReplicaCircle::kTick);
  circle.Join(early.seat, now);
  circle.Join(late.seat, now);
  circle.Run(now, 1);
  EXPECT_EQ(late.sessions.Find("s", now), WorkerId(1));
}

TEST_F(SessionExchangeTest, TwoSidesThatWereApartAgreeAgain) {
  circle_.Leave(c_.seat, now_);
  a_.sessions.Remember("here", WorkerId(1), now_);
  c_.sessions.Remember("there", WorkerId(2), now_);
  c_.pins.Remember("r", WorkerId(2), now_);
  Run(seconds(5));
  circle_.Join(c_.seat, now_);
  Run(seconds(5));
  EXPECT_EQ(c_.sessions.Find("here", now_), WorkerId(1));
  EXPECT_EQ(a_.sessions.Find("there", now_), WorkerId(2));
  EXPECT_EQ(b_.sessions.Find("there", now_), WorkerId(2));
  EXPECT_EQ(b_.pins.Find("r", now_)->worker, WorkerId(2));
}

TEST_F(SessionExchangeTest, ARidiculousClockIsNotBelieved) {
  ReplicaMessage message{.origin = "b", .number = 1};
  message.content =
      SessionBindings{{{.session = 1, .worker = 1, .clock = UINT64_MAX, .idle_ms = 0}}};
  a_.exchange.Heard(message, now_);
  EXPECT_EQ(a_.sessions.size(), 0u);
  a_.sessions.Remember("s", WorkerId(1), now_);
  Tick();
  EXPECT_EQ(b_.sessions.Find("s", now_), WorkerId(1));
}

// Whatever is bound where, and whichever messages are late: when all were heard, all agree.
TEST(SessionExchangeProperty, BindingsConverge) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    TimePoint now = kSessionBegin;
    std::vector<std::unique_ptr<SessionAffinity>> replicas;
    for (int i = 0; i < 4; ++i) {
      replicas.push_back(std::make_unique<SessionAffinity>(minutes(10), 7));
      replicas.back()->Listen();
    }
    struct Late {
      SessionAffinity::Told told;
      size_t to;
    };
    std::vector<Late> late;
    std::vector<SessionAffinity::Told> news;
    const auto hear_one = [&] {
      const size_t which = random.Below(late.size());
      replicas[late[which].to]->Learn(late[which].told, now);
      late[which] = late.back();
      late.pop_back();
    };
    for (int step = 0; step < 500; ++step) {
      now += std::chrono::milliseconds(10);
      const size_t who = random.Below(replicas.size());
      replicas[who]->Remember(std::to_string(random.Below(5)), WorkerId(random.Below(4)), now);
      news.clear();
      replicas[who]->TakeNews(news, 100);
      for (const auto& told : news) {
        for (size_t to = 0; to < replicas.size(); ++to) {
          if (to != who) late.push_back({told, to});
        }
      }
      for (uint64_t i = random.Below(8); i > 0 && !late.empty(); --i) hear_one();
    }
    while (!late.empty()) hear_one();
    for (int session = 0; session < 5; ++session) {
      const std::string name = std::to_string(session);
      for (const auto& replica : replicas) {
        ASSERT_EQ(replica->Find(name, now), replicas[0]->Find(name, now)) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace fathom
