#include "router/index/epochs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace fathom {
namespace {

TEST(Epochs, FreesAtOnceWhatNobodyCanSee) {
  Epochs epochs;
  bool freed = false;
  epochs.Retire([&] { freed = true; });
  EXPECT_TRUE(freed);
}

TEST(Epochs, KeepsWhatAPinnedReaderMaySee) {
  Epochs epochs;
  Epochs::Seat seat(epochs);
  int freed = 0;
  {
    const Epochs::Pin pin(seat);
    epochs.Retire([&] { ++freed; });
    epochs.Collect();
    EXPECT_EQ(freed, 0);
    seat.Renew();
    epochs.Retire([&] { ++freed; });
    EXPECT_EQ(freed, 1);  // the first only: the second was visible when the pin was renewed
  }
  epochs.Collect();
  EXPECT_EQ(freed, 2);
}

TEST(Epochs, FreesEverythingInTheEnd) {
  int freed = 0;
  {
    Epochs epochs;
    Epochs::Seat seat(epochs);
    const Epochs::Pin pin(seat);
    epochs.Retire([&] { ++freed; });
  }
  EXPECT_EQ(freed, 1);
}

// Under the thread and address sanitizers this fails if a reader could access freed memory.
TEST(Epochs, NoReaderMeetsWhatWasFreed) {
  Epochs epochs;
  std::atomic<int*> shared{new int(0)};
  std::atomic<bool> stop{false};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      Epochs::Seat seat(epochs);
      while (!stop.load(std::memory_order_relaxed)) {
        const Epochs::Pin pin(seat);
        ASSERT_GE(*shared.load(std::memory_order_seq_cst), 0);
      }
    });
  }
  for (int i = 1; i < 20'000; ++i) {
    int* const old = shared.exchange(new int(i), std::memory_order_seq_cst);
    epochs.Retire([old] {
      *old = -1;
      delete old;
    });
  }
  stop.store(true, std::memory_order_relaxed);
  readers.clear();
  delete shared.load(std::memory_order_relaxed);
}

}  // namespace
}  // namespace fathom
