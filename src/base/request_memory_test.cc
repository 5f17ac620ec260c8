#include "base/request_memory.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(RequestMemory, GivesWhatItHas) {
  RequestMemory budget(10);
  EXPECT_TRUE(budget.TryTake(6));
  EXPECT_FALSE(budget.TryTake(5));
  EXPECT_TRUE(budget.TryTake(4));
  budget.Return(10);
  EXPECT_EQ(budget.used(), 0u);
}

TEST(RequestMemory, GetsASharesBytesBackOnce) {
  RequestMemory budget(10);
  {
    RequestMemory::Share share;
    EXPECT_FALSE(share.TryTake(budget, 11));
    EXPECT_TRUE(share.TryTake(budget, 8));
    RequestMemory::Share moved = std::move(share);
    EXPECT_EQ(budget.used(), 8u);
    moved.ShrinkTo(3);
    moved.ShrinkTo(5);  // no larger again
    EXPECT_EQ(budget.used(), 3u);
    RequestMemory::Share assigned;
    assigned = std::move(moved);
    EXPECT_EQ(budget.used(), 3u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace fathom
