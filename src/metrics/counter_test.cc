#include "metrics/counter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace fathom {
namespace {

TEST(Counter, StartsAtZeroAndSumsWhatWasAdded) {
  Counter counter;
  EXPECT_EQ(counter.Value(), 0u);
  counter.Add();
  counter.Add(41);
  EXPECT_EQ(counter.Value(), 42u);
}

TEST(Counter, LosesNothingWhenManyThreadsAdd) {
  constexpr int kThreads = 12;  // more than stripes, so some threads share one
  constexpr int kAdds = 20000;
  Counter counter;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kAdds; ++i) counter.Add();
      });
    }
  }
  EXPECT_EQ(counter.Value(), uint64_t{kThreads} * kAdds);
}

TEST(Counter, NeverFallsWhileThreadsAdd) {
  Counter counter;
  std::atomic<bool> stop{false};
  std::jthread writer([&] {
    while (!stop.load()) counter.Add();
  });
  uint64_t last = 0;
  bool fell = false;
  while (last < 100000 && !fell) {
    const uint64_t now = counter.Value();
    fell = fell || now < last;
    last = now;
  }
  stop.store(true);
  EXPECT_FALSE(fell);
}

TEST(Gauge, AddsSubtractsAndIsReplaced) {
  Gauge gauge;
  gauge.Add(5);
  gauge.Add(-7);
  EXPECT_EQ(gauge.Value(), -2);
  gauge.Set(100);
  EXPECT_EQ(gauge.Value(), 100);
}

TEST(Gauge, ReturnsToZeroWhenEveryThreadUndoesWhatItAdded) {
  Gauge gauge;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 10000; ++i) {
          gauge.Add(3);
          gauge.Add(-3);
        }
      });
    }
  }
  EXPECT_EQ(gauge.Value(), 0);
}

TEST(Stripe, StaysTheSameForAThreadAndGoesRoundForNewOnes) {
  const size_t mine = StripeOfThisThread();
  std::set<size_t> seen;
  for (size_t t = 0; t < kStripes; ++t) {
    std::jthread([&] { seen.insert(StripeOfThisThread()); }).join();
  }
  EXPECT_EQ(seen.size(), kStripes);
  EXPECT_EQ(StripeOfThisThread(), mine);
}

TEST(Stripe, CellsDoNotShareACacheLine) {
  EXPECT_EQ(sizeof(Counter), kStripes * kCacheLine);
  EXPECT_EQ(alignof(Counter), kCacheLine);
}

}  // namespace
}  // namespace fathom
