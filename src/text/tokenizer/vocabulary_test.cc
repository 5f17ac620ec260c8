#include "text/tokenizer/vocabulary.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(Vocabulary, FindsTextsAndIds) {
  Vocabulary vocabulary;
  for (TokenId id = 0; id < 1000; ++id) ASSERT_TRUE(vocabulary.Add(2 * id, std::to_string(id)));
  for (TokenId id = 0; id < 1000; ++id) {
    EXPECT_EQ(vocabulary.Find(std::to_string(id)), 2 * id);
    EXPECT_EQ(vocabulary.TextOf(2 * id), std::to_string(id));
  }
  EXPECT_EQ(vocabulary.Find("1000"), Vocabulary::kNone);
  EXPECT_EQ(vocabulary.TextOf(1), std::nullopt);
  EXPECT_EQ(vocabulary.TextOf(5000), std::nullopt);
  EXPECT_EQ(vocabulary.size(), 1000);
  EXPECT_EQ(vocabulary.id_limit(), 1999);
}

TEST(Vocabulary, HasEachIdAndEachTextOnce) {
  Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.Find(""), Vocabulary::kNone);
  EXPECT_TRUE(vocabulary.Add(7, "a"));
  EXPECT_FALSE(vocabulary.Add(7, "b"));
  EXPECT_FALSE(vocabulary.Add(8, "a"));
  EXPECT_TRUE(vocabulary.Add(8, ""));
  EXPECT_EQ(vocabulary.Find(""), 8);
  EXPECT_EQ(vocabulary.Find("b"), Vocabulary::kNone);
}

}  // namespace
}  // namespace fathom
