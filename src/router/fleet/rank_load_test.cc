#include "router/fleet/rank_load.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

#include "base/random.h"
#include "testing/sanitizers.h"
#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using LoadKind = RankLoad::Kind;

// A unit of work lasts a microsecond here.
constexpr double kUnit = 1000;

class RankLoadTest : public testing::Test {
 protected:
  void Enter(RankLoad::Stay& stay, double work, LoadKind kind = LoadKind::kAnnounced) {
    load_.Enter(stay, kind, work, 0, now_);
  }
  RankLoad::View Look() { return load_.Look(now_, kUnit); }
  double Backlog() { return Look().backlog; }
  void Pass(int64_t units) { now_ += microseconds(units); }

  RankLoad load_;
  TimePoint now_ = kTestBegin;
};

TEST_F(RankLoadTest, CountsARequestFromItsDispatchToItsEnd) {
  RankLoad::Stay stay;
  load_.Enter(stay, LoadKind::kAnnounced, 1000, 500, now_);
  EXPECT_EQ(Look(),
            (RankLoad::View{
                .backlog = 1000, .queued = 1000, .context = 500, .requests = 1, .waiting = 1}));
  load_.FirstByte(stay, now_);
  EXPECT_EQ(Look(), (RankLoad::View{.context = 500, .requests = 1}));
  load_.Grow(stay, 7);
  EXPECT_EQ(Look().context, 507u);
  load_.Leave(stay, now_);
  EXPECT_EQ(Look(), RankLoad::View{});
}

TEST_F(RankLoadTest, TakesWhatIsDoneOffTheOldestPrefillOnly) {
  RankLoad::Stay a;
  RankLoad::Stay b;
  Enter(a, 1000);
  Enter(b, 500);
  Pass(400);
  EXPECT_DOUBLE_EQ(Backlog(), 1100);
  EXPECT_DOUBLE_EQ(Look().queued, 1500);
  Pass(400);
  EXPECT_DOUBLE_EQ(Backlog(), 700);
  load_.Leave(a, now_);
  load_.Leave(b, now_);
}

TEST_F(RankLoadTest, DoesNotCountAnOverduePrefillAsDone) {
  RankLoad::Stay a;
  RankLoad::Stay b;
  Enter(a, 1000);
  Enter(b, 500);
  Pass(100'000);
  EXPECT_GT(Backlog(), 500);
  EXPECT_LT(Backlog(), 700);
  EXPECT_EQ(Look().waiting, 2u);
  load_.Leave(a, now_);
  load_.Leave(b, now_);
}

TEST_F(RankLoadTest, BeginsTheNextPrefillAtTheFirstByteOfTheOneBefore) {
  RankLoad::Stay a;
  RankLoad::Stay b;
  Enter(a, 1000);
  Enter(b, 500);
  Pass(2000);
  load_.FirstByte(a, now_);
  EXPECT_DOUBLE_EQ(Backlog(), 500);
  Pass(100);
  EXPECT_DOUBLE_EQ(Backlog(), 400);
  load_.Leave(a, now_);
  EXPECT_DOUBLE_EQ(Backlog(), 400) << "its end says nothing about prefills";
  load_.Leave(b, now_);
}

TEST_F(RankLoadTest, StartsAfreshWhenWorkComesAfterIdleTime) {
  RankLoad::Stay a;
  RankLoad::Stay b;
  Enter(a, 1000);
  load_.FirstByte(a, now_);
  Pass(5000);
  Enter(b, 1000);
  EXPECT_DOUBLE_EQ(Backlog(), 1000);
  load_.Leave(a, now_);
  load_.Leave(b, now_);
}

TEST_F(RankLoadTest, KeepsTheProgressWhenSomebodyLeavesFromTheMiddle) {
  RankLoad::Stay a;
  RankLoad::Stay b;
  RankLoad::Stay c;
  Enter(a, 1000);
  Enter(b, 500);
  Enter(c, 200);
  Pass(300);
  load_.Leave(b, now_);
  EXPECT_DOUBLE_EQ(Backlog(), 900);
  Pass(100);
  load_.Leave(c, now_);
  EXPECT_DOUBLE_EQ(Backlog(), 600);
  load_.Leave(a, now_);
  EXPECT_EQ(Look(), RankLoad::View{});
}

TEST_F(RankLoadTest, BeginsTheNextPrefillWhenTheOldestLeaves) {
  RankLoad::Stay a;
  RankLoad::Stay b;
  Enter(a, 1000);
  Enter(b, 500);
  Pass(700);
  load_.Leave(a, now_);
  EXPECT_DOUBLE_EQ(Backlog(), 500);
  load_.Leave(b, now_);
}

TEST_F(RankLoadTest, EndsSilentPrefillsWhenTheirTimeIsOver) {
  RankLoad::Stay a;
  RankLoad::Stay b;
  RankLoad::Stay c;
  Enter(a, 1000, LoadKind::kSilent);
  Enter(b, 500, LoadKind::kSilent);
  Enter(c, 400);
  Pass(999);
  EXPECT_EQ(Look().waiting, 3u);
  Pass(1 + 100);
  EXPECT_EQ(Look().waiting, 2u);
  EXPECT_DOUBLE_EQ(Backlog(), 800) << "the second began when the first was over";
  Pass(400 + 100);
  EXPECT_EQ(Look().waiting, 1u);
  EXPECT_DOUBLE_EQ(Backlog(), 300) << "and so did the third";
  Pass(100'000);
  EXPECT_EQ(Look().waiting, 1u) << "that one will announce itself";
  EXPECT_EQ(Look().requests, 3u);
  for (RankLoad::Stay* stay : {&a, &b, &c}) load_.Leave(*stay, now_);
  EXPECT_EQ(Look(), RankLoad::View{});
}

TEST_F(RankLoadTest, EndsSilentPrefillsAtTheFirstByteOfALaterRequest) {
  RankLoad::Stay silent;
  RankLoad::Stay announced;
  RankLoad::Stay later;
  RankLoad::Stay after;
  Enter(silent, 1000, LoadKind::kSilent);
  Enter(announced, 300);
  Enter(later, 400);
  Enter(after, 500, LoadKind::kSilent);
  load_.FirstByte(later, now_);
  EXPECT_EQ(Look().waiting, 2u);
  EXPECT_DOUBLE_EQ(Look().queued, 800) << "announced ones and those behind it stay";
  for (RankLoad::Stay* stay : {&silent, &announced, &later, &after}) load_.Leave(*stay, now_);
}

TEST_F(RankLoadTest, TakesARepeatedFirstByteOrLeaveOnce) {
  RankLoad::Stay a;
  RankLoad::Stay b;
  load_.Enter(a, LoadKind::kAnnounced, 100, 10, now_);
  load_.Enter(b, LoadKind::kAnnounced, 100, 10, now_);
  for (int i = 0; i < 3; ++i) load_.FirstByte(a, now_);
  for (int i = 0; i < 3; ++i) load_.Leave(a, now_);
  load_.FirstByte(a, now_);
  load_.Grow(a, 5);
  EXPECT_EQ(
      Look(),
      (RankLoad::View{.backlog = 100, .queued = 100, .context = 10, .requests = 1, .waiting = 1}));
  load_.Leave(b, now_);
  EXPECT_EQ(Look(), RankLoad::View{});
}

TEST_F(RankLoadTest, SurvivesAClockThatOtherLoopsSeeALittleLater) {
  RankLoad::Stay stay;
  Enter(stay, 1000);
  now_ -= milliseconds(5);
  EXPECT_DOUBLE_EQ(Backlog(), 1000);
  load_.Leave(stay, now_);
}

// --- the work of other replicas ------------------------------------------------------------------

TEST_F(RankLoadTest, AddsWhatOtherReplicasHavePlaced) {
  RankLoad::Stay own;
  load_.Enter(own, LoadKind::kAnnounced, 1000, 500, now_);
  load_.SetForeign({.queued = 300,
                    .oldest = 200,
                    .busy_since = now_,
                    .context = 70,
                    .requests = 3,
                    .waiting = 2});
  EXPECT_EQ(Look(),
            (RankLoad::View{
                .backlog = 1300, .queued = 1300, .context = 570, .requests = 4, .waiting = 3}));
  EXPECT_EQ(load_.placed(), (RankLoad::Placed{.queued = 1000,
                                              .oldest = 1000,
                                              .busy_since = now_,
                                              .context = 500,
                                              .requests = 1,
                                              .waiting = 1}))
      << "what others did is not told on";
  EXPECT_EQ(load_.waiting_in_all(), 3u);
  load_.Leave(own, now_);
  EXPECT_EQ(
      Look(),
      (RankLoad::View{.backlog = 300, .queued = 300, .context = 70, .requests = 3, .waiting = 2}));
  load_.SetForeign({});
  EXPECT_EQ(Look(), RankLoad::View{});
}

TEST_F(RankLoadTest, EntersBehindThePrefillsOfOtherReplicas) {
  load_.SetForeign(
      {.queued = 1000, .oldest = 1000, .busy_since = now_, .requests = 1, .waiting = 1});
  Pass(400);
  RankLoad::Stay own;
  Enter(own, 500);
  EXPECT_DOUBLE_EQ(Backlog(), 1100) << "the other's prefill goes on";
  EXPECT_EQ(load_.placed().busy_since, TimePoint{}) << "nothing has begun here";
  Pass(600);
  load_.SetForeign({.busy_since = now_, .requests = 1});
  EXPECT_DOUBLE_EQ(Backlog(), 500) << "its first byte began this one";
  Pass(100);
  EXPECT_DOUBLE_EQ(Backlog(), 400);
  load_.SetForeign({});
  EXPECT_DOUBLE_EQ(Backlog(), 400) << "and its end says nothing about prefills";
  load_.Leave(own, now_);
}

TEST_F(RankLoadTest, AFirstByteOfItsOwnBeginsThePrefillOfAnother) {
  RankLoad::Stay own;
  Enter(own, 500);
  load_.SetForeign(
      {.queued = 1000, .oldest = 1000, .busy_since = TimePoint{}, .requests = 1, .waiting = 1});
  Pass(500);
  load_.FirstByte(own, now_);
  EXPECT_DOUBLE_EQ(Backlog(), 1000);
  Pass(100'000);
  EXPECT_NEAR(Backlog(), 100, 1e-9) << "overdue, not done";
  load_.SetForeign({});
  load_.Leave(own, now_);
  EXPECT_EQ(Look(), RankLoad::View{});
}

TEST_F(RankLoadTest, EndsItsOwnSilentPrefillsWhateverOthersDo) {
  RankLoad::Stay silent;
  Enter(silent, 1000, LoadKind::kSilent);
  Pass(600);
  load_.SetForeign({.queued = 300, .oldest = 300, .busy_since = now_, .requests = 1, .waiting = 1});
  EXPECT_EQ(load_.silence().since, kTestBegin);
  EXPECT_DOUBLE_EQ(load_.silence().work, 1000);
  Pass(400);
  EXPECT_EQ(Look().waiting, 1u);
  EXPECT_DOUBLE_EQ(Look().queued, 300);
  load_.Leave(silent, now_);
}

// A thread's requests enter, grow and leave in any order, with work that does not sum exactly.
void LiveOn(RankLoad& load, uint64_t seed, int times) {
  Random random(seed);
  std::deque<RankLoad::Stay> stays;
  std::vector<RankLoad::Stay*> live;
  TimePoint now = kTestBegin;
  for (int i = 0; i < times || !live.empty(); ++i) {
    now += microseconds(random.Below(50));
    const uint64_t act = random.Below(5);
    if (i < times && (live.empty() || act == 0)) {
      live.push_back(&stays.emplace_back());
      load.Enter(*live.back(), random.Below(3) == 0 ? LoadKind::kSilent : LoadKind::kAnnounced,
                 random.Unit() * 1e4 + 0.1, random.Below(10'000), now);
      continue;
    }
    if (live.empty()) continue;
    const size_t who = random.Below(live.size());
    if (act == 1) load.Grow(*live[who], random.Below(100));
    if (act == 2) load.FirstByte(*live[who], now);
    if (act == 3) load.Look(now, kUnit);
    if (act != 4) continue;
    load.Leave(*live[who], now);
    live.erase(live.begin() + static_cast<int64_t>(who));
  }
}

TEST(RankLoadLife, ReturnsToExactlyZero) {
  RankLoad load;
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] { LiveOn(load, seed, kSanitized ? 5000 : 50'000); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(load.Look(kTestBegin, kUnit), RankLoad::View{});
}

// While another thread says what other replicas have placed.
TEST(RankLoadLife, ReturnsToExactlyZeroAlsoWithOthers) {
  RankLoad load;
  std::thread others([&] {
    Random random(9);
    for (int i = 0; i < 10'000; ++i) {
      const auto waiting = static_cast<uint32_t>(random.Below(3));
      const double work = waiting * random.Unit() * 1e4;
      load.SetForeign({.queued = work,
                       .oldest = work * random.Unit(),
                       .busy_since = kTestBegin + microseconds(random.Below(1000)),
                       .context = random.Below(1000),
                       .requests = waiting + static_cast<uint32_t>(random.Below(2)),
                       .waiting = waiting});
    }
    load.SetForeign({});
  });
  LiveOn(load, 1, kSanitized ? 2000 : 20'000);
  others.join();
  EXPECT_EQ(load.Look(kTestBegin, kUnit), RankLoad::View{});
  EXPECT_EQ(load.placed().queued, 0);
}

TEST(RankLoadLife, NeverShowsANegativeBacklog) {
  Random random(7);
  for (int life = 0; life < 200; ++life) {
    RankLoad load;
    std::deque<RankLoad::Stay> stays(20);
    TimePoint now = kTestBegin;
    for (RankLoad::Stay& stay : stays) {
      load.Enter(stay, LoadKind::kAnnounced, 128 + random.Unit() * 1e6, 1, now);
    }
    for (RankLoad::Stay& stay : stays) {
      now += microseconds(random.Below(2'000'000));
      const RankLoad::View view = load.Look(now, kUnit);
      ASSERT_GT(view.backlog, 0);
      ASSERT_LE(view.backlog, view.queued);
      load.Leave(stay, now);
    }
  }
}

}  // namespace
}  // namespace fathom
