#include "text/tokenizer/joined_characters.h"

#include <gtest/gtest.h>

#include <string>

#include "text/unicode/utf8.h"

namespace fathom {
namespace {

TEST(JoinedCharacters, KnowsNeighboursInTheirOrder) {
  JoinedCharacters joined;
  joined.Add("ab\u4e2d\U0001f600");
  joined.Add("x");
  joined.Add("");
  EXPECT_TRUE(joined.Contains('a', 'b'));
  EXPECT_TRUE(joined.Contains('b', 0x4e2d));
  EXPECT_TRUE(joined.Contains(0x4e2d, 0x1f600));
  EXPECT_FALSE(joined.Contains('b', 'a'));
  EXPECT_FALSE(joined.Contains('a', 0x4e2d));
  EXPECT_FALSE(joined.Contains(0x1f600, 0x4e2d));
}

TEST(JoinedCharacters, KeepsAllOfMany) {
  JoinedCharacters joined;
  for (uint32_t value = 0x4e00; value < 0x6e00; ++value) {
    std::string token = "a";
    AppendCodePoint(token, value);
    joined.Add(token);
  }
  for (uint32_t value = 0x4e00; value < 0x6e00; ++value) {
    EXPECT_TRUE(joined.Contains('a', value));
    EXPECT_FALSE(joined.Contains('b', value));
  }
}

}  // namespace
}  // namespace fathom
