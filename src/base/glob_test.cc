#include "base/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

TEST(GlobTest, MatchesNames) {
  EXPECT_TRUE(MatchesGlob("llama", "llama"));
  EXPECT_FALSE(MatchesGlob("llama", "llama-3"));
  EXPECT_FALSE(MatchesGlob("llama", "Llama"));
  EXPECT_TRUE(MatchesGlob("meta-llama/*", "meta-llama/Llama-3.1-8B"));
  EXPECT_FALSE(MatchesGlob("meta-llama/*", "Qwen/Qwen3-32B"));
  EXPECT_TRUE(MatchesGlob("*-8B", "meta-llama/Llama-3.1-8B"));
  EXPECT_TRUE(MatchesGlob("*Llama*8B", "meta-llama/Llama-3.1-8B"));
  EXPECT_TRUE(MatchesGlob("*ab*ab", "abcabab"));
  EXPECT_FALSE(MatchesGlob("*ab*ab", "ab"));
  EXPECT_TRUE(MatchesGlob("qwen?", "qwen3"));
  EXPECT_FALSE(MatchesGlob("qwen?", "qwen"));
  EXPECT_TRUE(MatchesGlob("[a]", "[a]")) << "no other character is special";
}

TEST(GlobTest, MatchesNothingAndEverything) {
  EXPECT_TRUE(MatchesGlob("", ""));
  EXPECT_FALSE(MatchesGlob("", "a"));
  EXPECT_FALSE(MatchesGlob("a", ""));
  EXPECT_TRUE(MatchesGlob("*", ""));
  EXPECT_TRUE(MatchesGlob("**", "anything"));
}

// Trying every split of the text would take longer than a person lives.
TEST(GlobTest, EndsSoonWithManyStars) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesGlob(pattern + "b", std::string(4096, 'a')));
  EXPECT_TRUE(MatchesGlob(pattern, std::string(4096, 'a')));
}

}  // namespace
}  // namespace fathom
