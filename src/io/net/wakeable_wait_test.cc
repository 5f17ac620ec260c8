#include "io/net/wakeable_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "testing/loop_thread.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;

class WakeableWaitTest : public testing::Test {
 protected:
  Task<void> Await(WakeableWait& wait) {
    cause_ = co_await wait;
    resumed_on_ = std::this_thread::get_id();
    ++awaits_;
  }

  LoopThread thread_;
  WakeableWait wait_{thread_.loop()};
  std::optional<WakeCause> cause_;
  std::thread::id resumed_on_;
  int awaits_ = 0;
};

TEST_F(WakeableWaitTest, IsResumedOnItsLoopByAnotherThread) {
  std::thread::id loop;
  thread_.Call([&] { Spawn(Await(wait_)); });
  EXPECT_FALSE(cause_);
  wait_.Wake();
  thread_.Call([&] { loop = std::this_thread::get_id(); });
  EXPECT_EQ(cause_, WakeCause::kWoken);
  EXPECT_EQ(resumed_on_, loop);
}

TEST_F(WakeableWaitTest, IsResumedInsideACallOnItsLoop) {
  thread_.Call([&] {
    Spawn(Await(wait_));
    wait_.WakeNow();
    EXPECT_EQ(cause_, WakeCause::kWoken);
  });
}

TEST_F(WakeableWaitTest, KeepsOneWakeThatComesBeforeTheAwait) {
  thread_.Call([&] {
    wait_.Wake();
    wait_.Wake();
    Spawn(Await(wait_));
    EXPECT_EQ(awaits_, 1);
    Spawn(Await(wait_));
    EXPECT_EQ(awaits_, 1) << "the second wake came before the first await";
    wait_.WakeNow();
    EXPECT_EQ(awaits_, 2);
  });
}

TEST_F(WakeableWaitTest, KeepsNoCancellationThatComesBeforeTheAwait) {
  thread_.Call([&] {
    wait_.Cancel();
    Spawn(Await(wait_));
    EXPECT_FALSE(cause_);
    wait_.Cancel();
    EXPECT_EQ(cause_, WakeCause::kCancelled);
  });
}

TEST_F(WakeableWaitTest, PrefersAWakeToACancellationThatComesLater) {
  thread_.Call([&] {
    Spawn(Await(wait_));
    wait_.Wake();
    wait_.Cancel();
    EXPECT_FALSE(cause_) << "the post resumes it";
  });
  thread_.Call([] {});
  EXPECT_EQ(cause_, WakeCause::kWoken);
  EXPECT_EQ(awaits_, 1);
}

TEST_F(WakeableWaitTest, EndsEachAwaitAtTheDeadline) {
  WakeableWait brief(thread_.loop(), std::chrono::steady_clock::now() + milliseconds(5));
  thread_.Complete([&] { return Await(brief); });
  EXPECT_EQ(cause_, WakeCause::kTimedOut);
  cause_.reset();
  thread_.Complete([&] { return Await(brief); });
  EXPECT_EQ(cause_, WakeCause::kTimedOut);
}

TEST_F(WakeableWaitTest, CanBeWokenAfterATimeout) {
  WakeableWait brief(thread_.loop(), std::chrono::steady_clock::now() + milliseconds(5));
  thread_.Complete([&] { return Await(brief); });
  brief.Wake();
  thread_.Complete([&] { return Await(brief); });
  EXPECT_EQ(cause_, WakeCause::kWoken);
}

// Consumes wakes until `posted` shows that all were sent.
Task<void> Drain(WakeableWait& wait, const std::atomic<int>& posted, int all) {
  while (posted.load(std::memory_order_relaxed) < all) co_await wait;
}

// If a wake were lost, or did not publish what the waker wrote, the last await would not end.
TEST_F(WakeableWaitTest, LosesNoWakeOfManyThatRaceWithTheAwait) {
  constexpr int kWakes = 20'000;
  std::atomic<int> posted{0};
  std::thread waker([&] {
    for (int i = 0; i < kWakes; ++i) {
      posted.fetch_add(1, std::memory_order_relaxed);
      wait_.Wake();
    }
  });
  thread_.Complete([&] { return Drain(wait_, posted, kWakes); });
  waker.join();
  EXPECT_EQ(posted, kWakes);
}

}  // namespace
}  // namespace fathom
