#include "io/net/loop.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "io/net/socket.h"
#include "testing/loop_thread.h"

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

// The duration of a long turn must not be added to the wait that follows it.
TEST(Loop, CountsTheTimeThatATurnTookWhenItWaitsForTheNextDeadline) {
  Loop loop;
  TimePoint began{};
  TimePoint woke{};
  RunToEnd(loop, [&] { return WorkLongWhileAnotherSleeps(loop, began, woke); });
  EXPECT_LT(woke - began, milliseconds(700));
}

// More sockets than one batch of events holds.
TEST(Loop, DoesNotTakeItsOwnDelayForATimeOut) {
  constexpr size_t kPairs = 1000;
  Loop loop;
  std::vector<std::array<int, 2>> pairs(kPairs);
  std::vector<std::unique_ptr<Socket>> sockets;
  for (auto& pair : pairs) {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
    sockets.push_back(std::make_unique<Socket>(loop, pair[0]));
  }
  struct Script {
    static Task<void> Read(Socket& socket, TimePoint deadline, std::vector<IoStatus>& ends,
                           Loop& loop) {
      char byte = 0;
      const IoResult read = co_await socket.Read({&byte, 1}, deadline);
      ends.push_back(read.status);
      if (ends.size() == kPairs) loop.Stop();
    }
  };
  std::vector<IoStatus> ends;
  loop.Post([&] {
    const TimePoint deadline = loop.now() + milliseconds(20);
    for (const auto& socket : sockets) Spawn(Script::Read(*socket, deadline, ends, loop));
    for (const auto& pair : pairs) ASSERT_EQ(::write(pair[1], "x", 1), 1);
    std::this_thread::sleep_for(milliseconds(40));  // what a loop does that is held up
  });
  loop.Run();
  EXPECT_EQ(std::ranges::count(ends, IoStatus::kOk), kPairs);
  for (const auto& pair : pairs) ::close(pair[1]);
}

// What a thread sees that is stopped between the kernel's answer and its own next step: input comes
// and a deadline passes in the meantime. A signal that finds the thread asleep in epoll_wait, with
// an event just reported, is handled at that very place.
struct HeldUp {
  static inline std::atomic<int> input = -1;
  static inline std::atomic<TimePoint> came{};
  static void Handler(int /*signal*/) {
    [[maybe_unused]] const ssize_t n = ::write(input, "x", 1);
    came = Now();
    const timespec past_the_deadline{.tv_sec = 0, .tv_nsec = 35'000'000};
    ::nanosleep(&past_the_deadline, nullptr);
  }

  static Task<void> Read(Socket& socket, TimePoint deadline, IoStatus& end) {
    char byte = 0;
    const IoResult read = co_await socket.Read({&byte, 1}, deadline);
    end = read.status;
  }

  static Task<void> ReadBoth(Socket& first, Socket& second, IoStatus& end,
                             std::atomic<TimePoint>& deadline) {
    IoStatus other = IoStatus::kOk;
    auto reading = Read(first, kNever, other);
    const TimePoint until = Now() + milliseconds(30);
    auto waiting = Read(second, until, end);
    deadline = until;
    co_await waiting;
    co_await reading;
  }
};

TEST(Loop, DoesNotTakeADelayOnItsWayBackFromTheKernelForATimeOut) {
  struct sigaction held_up{};
  struct sigaction before{};
  held_up.sa_handler = &HeldUp::Handler;
  ASSERT_EQ(::sigaction(SIGUSR1, &held_up, &before), 0);
  int timeouts = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    Loop loop;
    std::array<std::array<int, 2>, 2> pairs{};
    for (auto& pair : pairs) {
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
    }
    HeldUp::input = pairs[1][1];
    Socket first(loop, pairs[0][0]);
    Socket second(loop, pairs[1][0]);
    IoStatus end = IoStatus::kOk;
    std::atomic<TimePoint> deadline{};
    std::thread thread(
        [&] { RunToEnd(loop, [&] { return HeldUp::ReadBoth(first, second, end, deadline); }); });
    while (deadline.load() == TimePoint()) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(1));
    ASSERT_EQ(::write(pairs[0][1], "x", 1), 1);
    ::pthread_kill(thread.native_handle(), SIGUSR1);
    thread.join();
    const bool in_time = HeldUp::came.load() < deadline.load();  // this machine has other work, too
    timeouts += in_time && end == IoStatus::kTimeout ? 1 : 0;
    for (const auto& pair : pairs) ::close(pair[1]);
  }
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(timeouts, 0);
}

}  // namespace
}  // namespace fathom
