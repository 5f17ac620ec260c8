#include "text/tokenizer/word_memory.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

using Memory = WordMemory<2, 3, 64>;
using Tokens = std::vector<TokenId>;

TEST(WordMemory, RecallsWhatItKept) {
  Memory memory;
  Tokens out = {9};
  const Memory::Key key = Memory::KeyOf("hello");
  EXPECT_FALSE(memory.Recall(key, out));
  memory.Keep(key, Tokens{1, 2});
  EXPECT_TRUE(memory.Recall(key, out));
  EXPECT_EQ(out, (Tokens{9, 1, 2}));
}

// Whatever else falls on the same slots: a word never has the tokens of another.
TEST(WordMemory, NeverTakesAWordForAnother) {
  Memory memory;
  std::vector<std::string> words;
  for (size_t length = 1; length <= Memory::kLongest; ++length) {
    for (size_t changed = 0; changed < length; ++changed) {
      for (const char c : {'\0', 'a', 'b', '\xff'}) {
        words.push_back(std::string(length, 'a'));
        words.back()[changed] = c;
      }
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    memory.Keep(Memory::KeyOf(words[i]), Tokens{static_cast<TokenId>(i)});
    for (size_t j = 0; j < words.size(); ++j) {
      Tokens out;
      if (!memory.Recall(Memory::KeyOf(words[j]), out)) continue;
      ASSERT_EQ(words[out.at(0)], words[j]);
    }
  }
}

TEST(WordMemory, KeepsAWordWithoutTokens) {
  Memory memory;
  memory.Keep(Memory::KeyOf("x"), {});
  Tokens out;
  EXPECT_TRUE(memory.Recall(Memory::KeyOf("x"), out));
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace fathom
