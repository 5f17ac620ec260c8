#include "router/replicas/load_exchange.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "testing/replica_circle.h"

namespace fathom {
namespace {

using Kind = RankLoad::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kLoadBegin{std::chrono::hours(1)};

// A router with its own fleet of the same workers.
class LoadedReplica {
 public:
  LoadedReplica(ReplicaCircle& circle, const std::string& id, size_t workers)
      : seat(circle.Add(id)), exchange(fleet, speed, seat, [this] { ++relieved; }) {
    for (size_t i = 0; i < workers; ++i) Add(i);
    seat.Invite(exchange);
  }
  void Add(size_t number) {
    const auto worker = *fleet.Add({.url = UrlOf(number)});
    fleet.SetModels(worker->id(), {.models = {"m"}, .cards = {"{}"}});
  }
  static std::string UrlOf(size_t number) { return "http://w:" + std::to_string(number); }
  Worker& WorkerOf(size_t number) {
    return *fleet.Current()->Find(WorkerId::OfUrl(UrlOf(number)))->worker;
  }
  RankLoad& Load(size_t number) { return WorkerOf(number).ranks.only().load; }
  RankLoad::View Look(size_t number, TimePoint now) { return Load(number).Look(now, 1000); }

  Fleet fleet{BreakerOptions{}};
  EngineSpeed speed;
  int relieved = 0;
  ReplicaCircle::Seat& seat;
  LoadExchange exchange;
};

class LoadExchangeTest : public testing::Test {
 protected:
  void SetUp() override {
    circle_.Join(a_.seat, now_);
    circle_.Join(b_.seat, now_);
    circle_.Run(now_, 2);
  }
  void Run(int ticks) { circle_.Run(now_, ticks); }

  TimePoint now_ = kLoadBegin;
  ReplicaCircle circle_;
  LoadedReplica a_{circle_, "a", 3};
  LoadedReplica b_{circle_, "b", 3};
};

TEST_F(LoadExchangeTest, AddsUpWhatEachHasPlaced) {
  RankLoad::Stay of_a;
  RankLoad::Stay of_b;
  a_.Load(1).Enter(of_a, Kind::kAnnounced, 1000, 500, now_);
  Run(1);
  EXPECT_EQ(b_.Look(1, now_ - milliseconds(5)),
            (RankLoad::View{
                .backlog = 1000, .queued = 1000, .context = 500, .requests = 1, .waiting = 1}));
  EXPECT_EQ(b_.exchange.Totals("a").requests, 1u);
  EXPECT_EQ(b_.exchange.Totals("a").queued, 1000);
  EXPECT_EQ(b_.WorkerOf(1).in_flight_in_all(), 1u);
  b_.Load(1).Enter(of_b, Kind::kAnnounced, 100, 50, now_);
  a_.Load(1).FirstByte(of_a, now_);
  Run(1);
  for (LoadedReplica* replica : {&a_, &b_}) {
    const RankLoad::View view = replica->Look(1, now_);
    EXPECT_EQ(view.queued, 100);
    EXPECT_EQ(view.context, 550u);
    EXPECT_EQ(view.requests, 2u);
    EXPECT_EQ(view.waiting, 1u);
  }
  a_.Load(1).Leave(of_a, now_);
  b_.Load(1).Leave(of_b, now_);
  Run(1);
  EXPECT_EQ(a_.Look(1, now_), RankLoad::View{});
  EXPECT_EQ(b_.Look(1, now_), RankLoad::View{});
  EXPECT_EQ(b_.WorkerOf(1).in_flight_in_all(), 0u);
}

TEST_F(LoadExchangeTest, TellsRequestsWithoutARankToo) {
  a_.WorkerOf(2).in_flight = 4;
  Run(10);
  EXPECT_EQ(b_.WorkerOf(2).in_flight_in_all(), 4u);
  EXPECT_EQ(b_.exchange.Totals("a").requests, 4u);
  EXPECT_EQ(b_.Look(2, now_), RankLoad::View{}) << "they are on no rank";
  a_.WorkerOf(2).in_flight = 0;
  Run(10);
  EXPECT_EQ(b_.WorkerOf(2).in_flight_in_all(), 0u);
}

TEST_F(LoadExchangeTest, KnowsItsOwnAlsoWhenItIsAlone) {
  RankLoad::Stay stay;
  a_.Load(1).Enter(stay, Kind::kAnnounced, 1000, 500, now_);
  Run(10);
  EXPECT_EQ(a_.exchange.Own().requests, 1u);
  circle_.Leave(b_.seat, now_);
  a_.Load(1).Leave(stay, now_);
  Run(10);
  EXPECT_EQ(a_.exchange.Own().requests, 0u);
  EXPECT_EQ(a_.exchange.Own().queued, 0);
}

TEST_F(LoadExchangeTest, ARouterThatHearsNoneIsStillHeard) {
  RankLoad::Stay stay;
  a_.Load(1).Enter(stay, Kind::kAnnounced, 1000, 500, now_);
  Run(10);
  EXPECT_EQ(b_.exchange.Totals("a").requests, 1u);
  ReplicaCircle::Deafen(a_.seat, b_.seat, now_);
  a_.Load(1).Leave(stay, now_);
  Run(250);
  EXPECT_EQ(b_.exchange.Totals("a").requests, 0u) << "told with the whole";
}

TEST_F(LoadExchangeTest, SaysNothingWhileNothingChanges) {
  Run(10);
  const uint64_t before = a_.seat.messages;
  Run(190);
  EXPECT_LE(a_.seat.messages - before, 1u) << "the whole, once per second";
}

TEST_F(LoadExchangeTest, TellsContextThatGrowsNowAndThen) {
  RankLoad::Stay stay;
  a_.Load(0).Enter(stay, Kind::kAnnounced, 10, 16'000, now_);
  a_.Load(0).FirstByte(stay, now_);
  Run(1);
  const uint64_t before = a_.seat.messages;
  for (int i = 0; i < 20; ++i) {
    a_.Load(0).Grow(stay, 10);
    Run(1);
  }
  EXPECT_EQ(a_.seat.messages, before);
  a_.Load(0).Grow(stay, 1000);
  Run(1);
  EXPECT_EQ(b_.Look(0, now_).context, 17'200u);
  a_.Load(0).Grow(stay, 1);
  Run(200);
  EXPECT_EQ(b_.Look(0, now_).context, 17'201u) << "with the next whole";
  a_.Load(0).Leave(stay, now_);
}

TEST_F(LoadExchangeTest, EndsSilentPrefillsThatNoChoiceLooksAt) {
  RankLoad::Stay stay;
  a_.Load(0).Enter(stay, Kind::kSilent, 100, 10, now_);
  Run(1);
  EXPECT_EQ(b_.Look(0, now_).waiting, 1u);
  Run(30);
  EXPECT_EQ(b_.Look(0, now_).waiting, 0u);
  EXPECT_EQ(b_.Look(0, now_).requests, 1u);
  a_.Load(0).Leave(stay, now_);
}

TEST_F(LoadExchangeTest, AWholeMakesGoodWhatWasLost) {
  RankLoad::Stay stay;
  a_.Load(0).Enter(stay, Kind::kAnnounced, 100, 10, now_);
  circle_.Run(now_, 1, [] { return true; });
  EXPECT_EQ(b_.Look(0, now_).requests, 0u);
  Run(200);
  EXPECT_EQ(b_.Look(0, now_).requests, 1u);
  a_.Load(0).Leave(stay, now_);
  circle_.Run(now_, 1, [] { return true; });
  EXPECT_EQ(b_.Look(0, now_).requests, 1u);
  Run(200);
  EXPECT_EQ(b_.Look(0, now_), RankLoad::View{});
}

TEST_F(LoadExchangeTest, SaysWhenThereMayBeRoomAgain) {
  RankLoad::Stay stay;
  a_.Load(0).Enter(stay, Kind::kAnnounced, 100, 10, now_);
  Run(1);
  EXPECT_EQ(b_.relieved, 0);
  a_.Load(0).FirstByte(stay, now_);
  Run(1);
  EXPECT_EQ(b_.relieved, 1);
  a_.Load(0).Grow(stay, 100);
  Run(1);
  EXPECT_EQ(b_.relieved, 1);
  a_.Load(0).Leave(stay, now_);
  Run(1);
  EXPECT_EQ(b_.relieved, 2);
  Run(400);
  EXPECT_EQ(b_.relieved, 2);
  EXPECT_EQ(a_.relieved, 0);
}

TEST_F(LoadExchangeTest, ForgetsAnOriginThatLeaves) {
  RankLoad::Stay stay;
  a_.Load(0).Enter(stay, Kind::kAnnounced, 100, 10, now_);
  Run(1);
  circle_.Leave(a_.seat, now_);
  EXPECT_EQ(b_.Look(0, now_), RankLoad::View{});
  EXPECT_EQ(b_.exchange.Totals("a").requests, 0u);
  circle_.Join(a_.seat, now_);
  Run(1);
  EXPECT_EQ(b_.Look(0, now_).requests, 1u) << "a newcomer is told everything";
  a_.Load(0).Leave(stay, now_);
}

TEST_F(LoadExchangeTest, AWorkerThatLeavesComesOutIdle) {
  RankLoad::Stay stay;
  const std::shared_ptr<Worker> worker =
      a_.fleet.Current()->Find(WorkerId::OfUrl(LoadedReplica::UrlOf(0)))->worker;
  worker->ranks.only().load.Enter(stay, Kind::kAnnounced, 100, 10, now_);
  Run(1);
  EXPECT_EQ(b_.Look(0, now_).requests, 1u);
  a_.fleet.Remove(worker->id());
  Run(20);
  EXPECT_EQ(b_.Look(0, now_), RankLoad::View{});
  worker->ranks.only().load.Leave(stay, now_);
}

TEST_F(LoadExchangeTest, AWorkerThatComesGetsWhatWasSaidOfIt) {
  RankLoad::Stay stay;
  a_.Add(7);
  a_.Load(7).Enter(stay, Kind::kAnnounced, 100, 10, now_);
  Run(20);
  b_.Add(7);
  EXPECT_EQ(b_.Look(7, now_).requests, 0u);
  Run(20);
  EXPECT_EQ(b_.Look(7, now_).requests, 1u);
  EXPECT_EQ(b_.WorkerOf(7).in_flight_in_all(), 1u);
  b_.fleet.Remove(b_.WorkerOf(7).id());
  Run(1);
  b_.Add(7);
  Run(20);
  EXPECT_EQ(b_.Look(7, now_).requests, 1u) << "another worker of the same name";
  a_.Load(7).Leave(stay, now_);
  Run(1);
  EXPECT_EQ(b_.Look(7, now_), RankLoad::View{});
  EXPECT_EQ(b_.WorkerOf(7).in_flight_in_all(), 0u);
}

TEST_F(LoadExchangeTest, FollowsRanksThatBecomeKnown) {
  a_.WorkerOf(0).ranks.Know(5);
  b_.WorkerOf(0).ranks.Know(5);
  RankLoad::Stay stay;
  RankLoad& load = a_.WorkerOf(0).ranks.Find(5)->load;
  load.Enter(stay, Kind::kAnnounced, 100, 10, now_);
  Run(20);
  EXPECT_EQ(b_.WorkerOf(0).ranks.Find(5)->load.Look(now_, 1000).requests, 1u);
  a_.WorkerOf(0).ranks.Forget(5);
  Run(20);
  EXPECT_EQ(b_.WorkerOf(0).ranks.Find(5)->load.Look(now_, 1000).requests, 1u)
      << "the request is still there";
  load.Leave(stay, now_);
  Run(1);
  EXPECT_EQ(b_.WorkerOf(0).ranks.Find(5)->load.Look(now_, 1000), RankLoad::View{});
}

// Three routers, many ranks, messages that are lost: at any time each view is what the others said;
// when all has ended every number is exactly zero.
TEST(LoadExchangeLife, SumsReturnToExactlyZero) {
  Random random(11);
  TimePoint now = kLoadBegin;
  ReplicaCircle circle;
  constexpr size_t kWorkers = 1500;  // more than fit into a message
  std::vector<std::unique_ptr<LoadedReplica>> replicas;
  for (const char* id : {"a", "b", "c"}) {
    replicas.push_back(std::make_unique<LoadedReplica>(circle, id, kWorkers));
    circle.Join(replicas.back()->seat, now);
  }
  struct Request {
    RankLoad* load = nullptr;
    RankLoad::Stay stay;
  };
  std::deque<Request> requests;
  const auto end_one = [&] {
    requests.front().load->Leave(requests.front().stay, now);
    requests.pop_front();
  };
  for (int step = 0; step < 300; ++step) {
    for (int i = 0; i < 20; ++i) {
      Request& request = requests.emplace_back();
      request.load = &replicas[random.Below(3)]->Load(random.Below(kWorkers));
      request.load->Enter(request.stay, random.Below(4) == 0 ? Kind::kSilent : Kind::kAnnounced,
                          random.Unit() * 3000, random.Below(5000), now);
      Request& some = requests[random.Below(requests.size())];
      some.load->FirstByte(some.stay, now);
      some.load->Grow(some.stay, random.Below(100));
      if (requests.size() > 1000) end_one();
    }
    circle.Run(now, 1, [&] { return random.Below(10) == 0; });
  }
  circle.Run(now, 220);
  for (size_t i = 0; i < kWorkers; ++i) {
    RankLoad::Placed sum;
    for (const auto& replica : replicas) {
      const RankLoad::Placed placed = replica->Load(i).placed();
      sum.requests += placed.requests;
      sum.waiting += placed.waiting;
      sum.context += placed.context;
    }
    for (const auto& replica : replicas) {
      const RankLoad::View view = replica->Load(i).LookAgain(now, 1000);
      ASSERT_EQ(view.requests, sum.requests);
      ASSERT_EQ(view.waiting, sum.waiting);
      ASSERT_EQ(view.context, sum.context);
      ASSERT_EQ(replica->WorkerOf(i).in_flight_elsewhere,
                sum.requests - replica->Load(i).placed().requests);
    }
  }
  while (!requests.empty()) end_one();
  circle.Run(now, 220);
  for (const auto& replica : replicas) {
    for (size_t i = 0; i < kWorkers; ++i) {
      ASSERT_EQ(replica->Load(i).LookAgain(now, 1000), RankLoad::View{});
      ASSERT_EQ(replica->WorkerOf(i).in_flight_in_all(), 0u);
    }
  }
}

}  // namespace
}  // namespace fathom
