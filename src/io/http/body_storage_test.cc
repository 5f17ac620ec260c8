#include "io/http/body_storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace fathom {
namespace {

constexpr size_t kMiB = 1 << 20;

TEST(BodyStorage, HoldsNothingAtFirst) {
  BodyStorage storage;
  EXPECT_EQ(storage.view(), "");
  EXPECT_EQ(storage.capacity(), 0u);
  storage.Append("");
  EXPECT_TRUE(storage.Reserve(0, 100));
  EXPECT_EQ(storage.view(), "");
}

TEST(BodyStorage, KeepsWhatItHoldsWhileItGrowsFromAllocatedToMapped) {
  BodyStorage storage;
  std::string model;
  const size_t limit = 24 * kMiB;
  for (char c = 'a'; model.size() < limit - kMiB; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
    const std::string piece(700'001, c);
    ASSERT_TRUE(storage.Reserve(piece.size(), limit));
    storage.Append(piece);
    model += piece;
  }
  EXPECT_TRUE(storage.view() == model);
  EXPECT_GE(storage.capacity(), limit);
}

TEST(BodyStorage, CanBeMappedFromTheStart) {
  BodyStorage storage;
  ASSERT_TRUE(storage.Reserve(20 * kMiB, 20 * kMiB));
  ASSERT_GE(storage.room().size(), 20 * kMiB);
  storage.room()[0] = 'x';
  storage.room()[20 * kMiB - 1] = 'y';
  storage.Commit(20 * kMiB);
  EXPECT_EQ(storage.view().front(), 'x');
  EXPECT_EQ(storage.view().back(), 'y');
  EXPECT_TRUE(storage.Reserve(0, 20 * kMiB));
}

TEST(BodyStorage, TakesAppendedNothingInItsStride) {
  BodyStorage storage;
  ASSERT_TRUE(storage.Reserve(10, 10));
  storage.Append("ab");
  storage.Append({});
  EXPECT_EQ(storage.view(), "ab");
}

TEST(BodyStorage, CostsLittleWhenALiarAnnouncesALot) {
  BodyStorage storage;
  const size_t lie = size_t{64} << 30;
  ASSERT_TRUE(storage.Reserve(lie, lie)) << "address space is not memory";
  storage.Append("truth");
  EXPECT_EQ(storage.view(), "truth");
}

TEST(BodyStorage, SaysSoWhenThereIsNoMemory) {
  BodyStorage storage;
  EXPECT_FALSE(storage.Reserve(size_t{1} << 60, size_t{1} << 60));
  EXPECT_TRUE(storage.Reserve(5, 5)) << "and can still be used";
  storage.Append("fine");
  EXPECT_EQ(storage.view(), "fine");
}

TEST(BodyStorage, CanBeUsedAgainOnceItIsFreed) {
  BodyStorage storage;
  for (const size_t size : {size_t{10}, 9 * kMiB, size_t{100}, 30 * kMiB}) {
    ASSERT_TRUE(storage.Reserve(size, size));
    std::fill_n(storage.room().begin(), size, 'q');
    storage.Commit(size);
    EXPECT_EQ(storage.view().size(), size);
    storage.Free();
    EXPECT_EQ(storage.view(), "");
  }
}

}  // namespace
}  // namespace fathom
