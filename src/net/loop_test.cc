#include "net/loop.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "net/loop_thread.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;

TimePoint Now() { return std::chrono::steady_clock::now(); }

TEST(Loop, RunsWhatOneThreadPostsInItsOrder) {
  LoopThread thread;
  std::vector<int> seen;
  for (int i = 0; i < 10'000; ++i) thread.loop().Post([&seen, i] { seen.push_back(i); });
  thread.Call([] {});
  ASSERT_EQ(seen.size(), 10'000u);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(Loop, LosesNothingThatSeveralThreadsPostAtOnce) {
  LoopThread thread;
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  std::vector<int> next(kThreads, 0);
  int total = 0;
  bool in_order = true;
  std::vector<std::thread> posters;
  for (int t = 0; t < kThreads; ++t) {
    posters.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        thread.loop().Post([&, t, i] {
          in_order = in_order && next[static_cast<size_t>(t)]++ == i;
          ++total;
        });
      }
    });
  }
  for (auto& poster : posters) poster.join();
  thread.Call([] {});
  EXPECT_EQ(total, kThreads * kEach);
  EXPECT_TRUE(in_order);
}

TEST(Loop, RunsWhatWasPostedBeforeItRan) {
  Loop loop;
  int calls = 0;
  loop.Post([&] { ++calls; });
  loop.Post([&] {
    ++calls;
    loop.Post([&] {
      ++calls;
      loop.Stop();
    });
  });
  loop.Run();
  EXPECT_EQ(calls, 3);
}

TEST(Loop, ReturnsAtOnceWhenItWasStoppedBeforeItRan) {
  Loop loop;
  loop.Stop();
  loop.Run();
  SUCCEED() << "it returned";
}

TEST(Loop, IsStoppedByAnotherThreadWhileNothingHappens) {
  Loop loop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(10));
    loop.Stop();
  });
  loop.Run();
  stopper.join();
  SUCCEED() << "it returned";
}

TEST(Loop, DestroysWithItselfWhatWasPostedAndNeverRan) {
  const auto held = std::make_shared<int>(1);
  {
    Loop loop;
    loop.Post([held] {});
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1);
}

Task<void> SleepThenNote(Loop& loop, Duration time, int name, std::vector<int>& order, int& left) {
  const TimePoint until = loop.now() + time;
  co_await loop.Sleep(time);
  EXPECT_GE(loop.now(), until) << name;
  order.push_back(name);
  if (--left == 0) loop.Stop();
}

TEST(Loop, EndsSleepsInTheOrderOfTheirDeadlinesAndNeverEarly) {
  Loop loop;
  std::vector<int> order;
  int left = 4;
  loop.Post([&] {
    Spawn(SleepThenNote(loop, milliseconds(45), 3, order, left));
    Spawn(SleepThenNote(loop, milliseconds(5), 1, order, left));
    Spawn(SleepThenNote(loop, Duration::zero(), 0, order, left));
    Spawn(SleepThenNote(loop, milliseconds(25), 2, order, left));
  });
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

Task<void> SleepThenNoteTime(Loop& loop, Duration time, TimePoint& woke) {
  co_await loop.Sleep(time);
  woke = Now();
}

Task<void> WorkLongWhileAnotherSleeps(Loop& loop, TimePoint& began, TimePoint& woke) {
  co_await loop.Sleep(milliseconds(1));
  began = Now();
  auto sleeping = SleepThenNoteTime(loop, milliseconds(400), woke);
  std::this_thread::sleep_for(milliseconds(390));
  co_await sleeping;
}

// A turn that takes long must not be added to the wait that follows it.
TEST(Loop, CountsTheTimeThatATurnTookWhenItWaitsForTheNextDeadline) {
  Loop loop;
  TimePoint began{};
  TimePoint woke{};
  RunToEnd(loop, [&] { return WorkLongWhileAnotherSleeps(loop, began, woke); });
  EXPECT_LT(woke - began, milliseconds(700));
}

}  // namespace
}  // namespace fathom
