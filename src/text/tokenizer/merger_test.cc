#include "text/tokenizer/merger.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "testing/small_tokenizer.h"

namespace fathom {
namespace {

// Merges of letters, as tables and as texts.
struct Rules {
  explicit Rules(std::vector<std::pair<std::string, std::string>> of = {}) : pairs(std::move(of)) {}

  std::vector<std::pair<std::string, std::string>> pairs;
  std::map<std::string, TokenId> ids;
  std::map<TokenId, std::string> texts;

  TokenId IdOf(const std::string& text) {
    const auto [entry, is_new] = ids.emplace(text, static_cast<TokenId>(ids.size()));
    texts[entry->second] = text;
    return entry->second;
  }

  MergeTable Table() {
    MergeTable table(pairs.size());
    for (const auto& [left, right] : pairs) table.Add(IdOf(left), IdOf(right), IdOf(left + right));
    return table;
  }

  std::vector<std::string> Run(std::string_view word) {
    const MergeTable table = Table();
    Merger merger(table);
    std::vector<TokenId> symbols;
    for (const char c : word) symbols.push_back(IdOf(std::string(1, c)));
    merger.Run(symbols);
    std::vector<std::string> out;
    for (const TokenId id : symbols) out.push_back(texts[id]);
    return out;
  }
};

std::vector<std::string> Letters(std::string_view word) {
  std::vector<std::string> letters;
  for (const char c : word) letters.emplace_back(1, c);
  return letters;
}

using Strings = std::vector<std::string>;

TEST(Merger, TakesTheLowestRankAndOfEqualOnesTheLeftmost) {
  Rules rules({{"b", "c"}, {"a", "b"}, {"a", "a"}});
  EXPECT_EQ(rules.Run("abc"), (Strings{"a", "bc"}));
  EXPECT_EQ(rules.Run("aaa"), (Strings{"aa", "a"}));
  EXPECT_EQ(rules.Run(""), Strings());
  EXPECT_EQ(rules.Run("z"), Strings{"z"});
}

TEST(Merger, LetsALaterRankOfTheSamePairCount) {
  Rules rules({{"a", "b"}, {"b", "c"}, {"a", "b"}});
  EXPECT_EQ(rules.Run("abc"), (Strings{"a", "bc"}));
}

Rules RandomRules() {
  Rules rules;
  Strings known = Letters("abc");
  const int count = *rc::gen::inRange(0, 14);
  for (int i = 0; i < count; ++i) {
    const std::string left = *rc::gen::elementOf(known);
    const std::string right = *rc::gen::elementOf(known);
    rules.pairs.emplace_back(left, right);
    if (std::ranges::find(known, left + right) == known.end()) known.push_back(left + right);
  }
  return rules;
}

RC_GTEST_PROP(MergerProperty, DoesWhatANaiveOneDoes, ()) {
  Rules rules = RandomRules();
  const auto size = *rc::gen::inRange(0, 200);
  const auto word =
      *rc::gen::container<std::string>(static_cast<size_t>(size), rc::gen::element('a', 'b', 'c'));
  // The last rank of a pair counts; the naive one knows only the first.
  std::vector<std::pair<std::string, std::string>> last;
  for (size_t i = 0; i < rules.pairs.size(); ++i) {
    const bool again = std::find(rules.pairs.begin() + static_cast<ptrdiff_t>(i) + 1,
                                 rules.pairs.end(), rules.pairs[i]) != rules.pairs.end();
    if (!again) last.push_back(rules.pairs[i]);
  }
  RC_ASSERT(rules.Run(word) == NaiveMerged(Letters(word), last));
}

// 256 KiB of bait; were it quadratic, the test would not end.
TEST(Merger, MergesLongWords) {
  Rules rules({{"a", "a"}, {"aa", "aa"}, {"b", "a"}, {"aaaa", "aaaa"}});
  EXPECT_EQ(rules.Run(std::string(256 << 10, 'a')).size(), (256 << 10) / 8);
  std::string alternating;
  for (int i = 0; i < 128 << 10; ++i) alternating += "ab";
  EXPECT_EQ(rules.Run(alternating).size(), (128 << 10) + 1);
}

}  // namespace
}  // namespace fathom
