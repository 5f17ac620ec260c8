#include "io/http/buffer.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace fathom {
namespace {

void Put(Buffer& buffer, std::string_view text) {
  ASSERT_LE(text.size(), buffer.room().size());
  std::copy(text.begin(), text.end(), buffer.room().begin());
  buffer.Commit(text.size());
}

TEST(Buffer, StartsEmptyWithAllItsRoom) {
  Buffer buffer(8);
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.view(), "");
  EXPECT_EQ(buffer.room().size(), 8u);
}

TEST(Buffer, GivesItsRoomBackWhenEverythingIsUsedUp) {
  Buffer buffer(8);
  Put(buffer, "12345678");
  EXPECT_TRUE(buffer.room().empty());
  buffer.Consume(3);
  EXPECT_EQ(buffer.view(), "45678");
  EXPECT_TRUE(buffer.room().empty()) << "the front is only free after Compact()";
  buffer.Consume(5);
  EXPECT_EQ(buffer.room().size(), 8u);
}

TEST(Buffer, KeepsWhatIsLeftWhenItMovesOrGrows) {
  Buffer buffer(8);
  Put(buffer, "12345678");
  buffer.Consume(6);
  buffer.Compact();
  EXPECT_EQ(buffer.view(), "78");
  EXPECT_EQ(buffer.room().size(), 6u);
  Put(buffer, "9abcde");
  buffer.Consume(1);
  buffer.Grow(32);
  EXPECT_EQ(buffer.view(), "89abcde");
  EXPECT_EQ(buffer.capacity(), 32u);
  EXPECT_EQ(buffer.room().size(), 25u);
}

TEST(Buffer, NeverShrinksButMakesRoomWhenAskedToGrowToLess) {
  Buffer buffer(8);
  Put(buffer, "12345678");
  buffer.Consume(4);
  buffer.Grow(2);
  EXPECT_EQ(buffer.capacity(), 8u);
  EXPECT_EQ(buffer.view(), "5678");
  EXPECT_EQ(buffer.room().size(), 4u);
}

TEST(BufferProperty, AgreesWithAString) {
  Random random(7);
  Buffer buffer(16);
  std::string model;
  char next = 'a';
  for (int i = 0; i < 20'000; ++i) {
    switch (random.Below(4)) {
      case 0: {
        const size_t n = random.Below(buffer.room().size() + 1);
        const std::string text(n, next = next == 'z' ? 'a' : static_cast<char>(next + 1));
        Put(buffer, text);
        model += text;
        break;
      }
      case 1: {
        const size_t n = random.Below(model.size() + 1);
        buffer.Consume(n);
        model.erase(0, n);
        break;
      }
      case 2:
        buffer.Compact();
        ASSERT_EQ(buffer.room().size(), buffer.capacity() - model.size());
        break;
      default:
        if (buffer.capacity() < 4096) buffer.Grow(random.Below(64) + model.size());
    }
    ASSERT_EQ(buffer.view(), model);
    ASSERT_EQ(buffer.size(), model.size());
    ASSERT_EQ(buffer.empty(), model.empty());
  }
}

}  // namespace
}  // namespace fathom
