#include "io/net/side_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>

namespace fathom {
namespace {

TEST(SideWork, RunsEveryJobOnAThreadOfItsOwn) {
  constexpr int kJobs = 100;
  std::atomic<int> elsewhere = 0;
  std::latch done(kJobs);
  const auto here = std::this_thread::get_id();
  SideWork work(2);
  for (int i = 0; i < kJobs; ++i) {
    ASSERT_TRUE(work.Run([&] {
      elsewhere += std::this_thread::get_id() != here ? 1 : 0;
      done.count_down();
    }));
  }
  done.wait();
  EXPECT_EQ(elsewhere, kJobs);
}

TEST(SideWork, RefusesMoreThanMayWait) {
  std::latch begun(1);
  std::latch go(1);
  SideWork work(1);
  ASSERT_TRUE(work.Run([&] {
    begun.count_down();
    go.wait();
  }));
  begun.wait();
  for (size_t i = 0; i < SideWork::kMaxWaiting; ++i) ASSERT_TRUE(work.Run([] {}));
  EXPECT_FALSE(work.Run([] {}));
  go.count_down();
}

TEST(SideWork, RefusesMoreBytesThanItMayHold) {
  std::latch begun(1);
  std::latch go(1);
  std::latch done(1);
  SideWork work(1);
  ASSERT_TRUE(work.Run(
      [&] {
        begun.count_down();
        go.wait();
      },
      SideWork::kMaxBytes - 10));
  begun.wait();
  EXPECT_FALSE(work.Run([] {}, 11));
  EXPECT_TRUE(work.Run([] {}, 10));
  go.count_down();
  ASSERT_TRUE(work.Run([&] { done.count_down(); }));
  done.wait();
  EXPECT_TRUE(work.Run([] {}, SideWork::kMaxBytes)) << "what is done is not counted";
}

TEST(SideWork, DropsWhatHasNotBegunWhenItStops) {
  std::latch begun(1);
  std::latch go(1);
  const auto owned = std::make_shared<int>(1);
  std::atomic<bool> ran = false;
  SideWork work(1);
  ASSERT_TRUE(work.Run([&] {
    begun.count_down();
    go.wait();
  }));
  begun.wait();
  ASSERT_TRUE(work.Run([owned, &ran] { ran = true; }));
  std::jthread stopping([&] { work.Stop(); });
  while (owned.use_count() > 1) std::this_thread::yield();
  go.count_down();
  stopping.join();
  EXPECT_FALSE(ran);
  EXPECT_FALSE(work.Run([] {}));
}

}  // namespace
}  // namespace fathom
