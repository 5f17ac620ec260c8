#include "text/tokens/text_key.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(TextKey, IsTheSameForTheSameTextAndSecret) {
  EXPECT_EQ(KeyOfText("abc", 1), KeyOfText("abc", 1));
  EXPECT_FALSE(KeyOfText("abc", 1) == KeyOfText("abd", 1));
  EXPECT_FALSE(KeyOfText("abc", 1) == KeyOfText("abc", 2));
}

TEST(TextKey, TellsWhereOneTextEndsAndTheNextBegins) {
  const TextKey begin = KeyOfText("model", 1);
  const auto chain = [&](std::string_view a, std::string_view b) {
    return ChainText(ChainText(begin, a, 1), b, 1);
  };
  EXPECT_EQ(chain("ab", "c"), chain("ab", "c"));
  EXPECT_FALSE(chain("ab", "c") == chain("a", "bc"));
  EXPECT_FALSE(chain("ab", "c") == chain("c", "ab"));
  EXPECT_FALSE(chain("", "") == ChainText(begin, "", 1));
}

}  // namespace
}  // namespace fathom
