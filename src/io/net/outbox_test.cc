#include "io/net/outbox.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

constexpr size_t kRoomOfTest = 10 * (Outbox::kOverhead + 1000);

OutboxItem Letter(size_t size, char filling = 'x') {
  return {"", std::make_shared<const std::string>(size, filling)};
}

TEST(Outbox, DropsTheOldestWhenItIsFull) {
  Outbox box(kRoomOfTest);
  for (char c = 'a'; c < 'a' + 12; ++c) EXPECT_TRUE(box.Push(Letter(1000, c)));
  EXPECT_EQ(box.dropped(), 2u);
  EXPECT_EQ(box.bytes(), kRoomOfTest);
  EXPECT_EQ(box.Pop().bytes->front(), 'c');
}

TEST(Outbox, LetsBulkHaveHalfOfTheRoomAndDisplaceNothing) {
  Outbox box(kRoomOfTest);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(box.PushBulk(Letter(1000)));
  EXPECT_FALSE(box.PushBulk(Letter(1000)));
  EXPECT_EQ(box.dropped(), 0u) << "its sender tries again";
  EXPECT_TRUE(box.Push(Letter(1000)));
  box.Pop();
  EXPECT_FALSE(box.PushBulk(Letter(1000)));
  box.Pop();
  EXPECT_TRUE(box.PushBulk(Letter(1000)));
}

TEST(Outbox, RefusesWhatIsLongerThanItsRoomAndKeepsTheRest) {
  Outbox box(kRoomOfTest);
  EXPECT_TRUE(box.Push(Letter(1)));
  EXPECT_FALSE(box.Push(Letter(kRoomOfTest)));
  EXPECT_FALSE(box.empty());
  EXPECT_EQ(box.dropped(), 1u);
}

TEST(Outbox, CountsWhatIsClearedAsDropped) {
  Outbox box(kRoomOfTest);
  EXPECT_TRUE(box.Push(Letter(1)));
  EXPECT_TRUE(box.Push(Letter(1)));
  box.Clear();
  EXPECT_TRUE(box.empty());
  EXPECT_EQ(box.bytes(), 0u);
  EXPECT_EQ(box.dropped(), 2u);
}

}  // namespace
}  // namespace fathom
