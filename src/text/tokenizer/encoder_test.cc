#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "testing/small_tokenizer.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using Pairs = std::vector<std::pair<std::string, std::string>>;
using Strings = std::vector<std::string>;

const Pairs kPairs = {{"a", "b"},  {"b", "c"}, {"ab", "c"}, {"a", "a"},   {"aa", "ab"},  {" ", "a"},
                      {" a", "b"}, {"c", "c"}, {"cc", "a"}, {"bc", "bc"}, {"aaab", "bc"}};

TEST(Encoder, MergesBytes) {
  const auto tokenizer = SmallTokenizer::OfBytes(kPairs).Parsed();
  EXPECT_EQ(Pieces(*tokenizer, "abc abcbc"), (Strings{"abc", " ", "abc", "bc"}));
  EXPECT_EQ(Pieces(*tokenizer, ""), Strings());
}

TEST(Encoder, TakesAWordThatIsATokenOnlyIfMergesMakeIt) {
  SmallTokenizer small = SmallTokenizer::OfBytes({{"a", "b"}});
  small.tokens.push_back("xyz");
  EXPECT_EQ(Pieces(*small.Parsed(), "xyz"), (Strings{"x", "y", "z"}));
  small.more_of_model = "\"ignore_merges\":true,";
  EXPECT_EQ(Pieces(*small.Parsed(), "xyz"), Strings{"xyz"});
  EXPECT_EQ(Pieces(*small.Parsed(), "xyzz"), (Strings{"x", "y", "z", "z"}));
}

TEST(Encoder, LeavesOutBytesThatTheVocabularyDoesNotHave) {
  SmallTokenizer small = SmallTokenizer::OfBytes({});
  std::erase(small.tokens, "x");
  EXPECT_EQ(Pieces(*small.Parsed(), "axxb"), (Strings{"a", "b"}));
  small.more_of_model = "\"unk_token\":\"?\",";
  EXPECT_EQ(Pieces(*small.Parsed(), "axxb"), (Strings{"a", "?", "?", "b"}));
  small.more_of_model = "\"unk_token\":\"?\",\"fuse_unk\":true,";
  EXPECT_EQ(Pieces(*small.Parsed(), "axxb"), (Strings{"a", "?", "b"}));
}

TEST(Encoder, FallsBackToBytesOfCharacters) {
  SmallTokenizer small = SmallTokenizer::OfCharacters("ab?", {{"a", "b"}});
  small.tokens.insert(small.tokens.end(), {"<0xC3>", "<0xBC>"});
  small.more_of_model = "\"byte_fallback\":true,\"unk_token\":\"?\",\"fuse_unk\":true,";
  const auto tokenizer = small.Parsed();
  EXPECT_EQ(Pieces(*tokenizer, "ab\u00fcb"), (Strings{"ab", "<0xC3>", "<0xBC>", "b"}));
  EXPECT_EQ(Pieces(*tokenizer, "\u4e2d\u4e2d"), Strings{"?"});
  EXPECT_EQ(Pieces(*tokenizer, "\u4e2d\u00fc"), (Strings{"<0xC3>", "<0xBC>", "?"}))
      << "in this order, as in the original";
  EXPECT_EQ(Pieces(*tokenizer,
                   "a\xc3"
                   "b"),
            (Strings{"a", "<0xC3>", "b"}));
}

TEST(Encoder, TakesWholeWordsOnlyWhenMergesAreIgnored) {
  SmallTokenizer small = SmallTokenizer::OfCharacters("abx", {{"a", "b"}});
  small.tokens.push_back("bxa");
  small.more_of_model = "\"ignore_merges\":true,";
  const auto tokenizer = small.Parsed();
  EXPECT_EQ(Pieces(*tokenizer, "bxa"), Strings{"bxa"});
  EXPECT_EQ(Pieces(*tokenizer, "bxaxbxa"), (Strings{"b", "x", "a", "x", "b", "x", "a"}));
}

TEST(Encoder, PrependsToTheBeginningOfThePrompt) {
  SmallTokenizer small = SmallTokenizer::OfCharacters("_ab", {{"_", "a"}});
  small.pre_tokenizer = R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first"})";
  small.added_tokens = R"([{"id":9,"content":"<s>","special":true}])";
  const auto tokenizer = small.Parsed();
  EXPECT_EQ(Pieces(*tokenizer, "a<s>a"), (Strings{"_a", "<s>", "a"}));
  EXPECT_EQ(Pieces(*tokenizer, "<s>a"), (Strings{"<s>", "a"}));
}

TEST(Encoder, RefusesAWordThatIsTooLongAndSaysWhere) {
  const auto tokenizer = SmallTokenizer::OfBytes(kPairs).Parsed();
  Encoder encoder(*tokenizer);
  std::vector<TokenId> out = {7};
  const std::string text = "ab " + std::string(10 << 20, 'a');
  const Result<void> done = encoder.EncodeText(text, true, out);
  ASSERT_FALSE(done);
  EXPECT_EQ(
      done.error().what,
      "a word of 10485761 bytes, from byte 2 on, is longer than the 262144 that words may have");
  EXPECT_THAT(out, ElementsAre(7));
  EXPECT_TRUE(encoder.EncodeText(text.substr(0, Tokenizer::kLongestWord), true, out));
}

TEST(Encoder, CutsALongTextOfAModelWithoutWords) {
  const auto tokenizer = SmallTokenizer::OfCharacters("ab_", {{"a", "b"}, {"_", "a"}}).Parsed();
  std::string text;
  while (text.size() < 2 * Tokenizer::kLongestWord) text += "_abb";
  EXPECT_EQ(EncodeAll(*tokenizer, text).size(), text.size() / 4 * 3);
  Encoder encoder(*tokenizer);
  std::vector<TokenId> out;
  const std::string joined(2 * Tokenizer::kLongestWord, 'x');
  EXPECT_FALSE(encoder.EncodeText(joined, true, out)) << "unknown characters are never apart";
}

// Bait for splitters and mergers; were they quadratic, the test would not end.
TEST(Encoder, EndsOnBait) {
  const auto tokenizer = SmallTokenizer::OfBytes(kPairs).Parsed();
  for (const std::string_view part :
       {"a", "ab", "'", " ", "1", "\u0301", "\n", " \n", "\xff", "abc"}) {
    std::string text;
    while (text.size() + part.size() <= Tokenizer::kLongestWord) text += part;
    const std::vector<TokenId> ids = EncodeAll(*tokenizer, text);
    EXPECT_EQ(tokenizer->Decode(ids), text);
  }
}

std::string RandomBytes() {
  const auto size = *rc::gen::inRange<size_t>(0, 120);
  return *rc::gen::container<std::string>(
      size, rc::gen::weightedOneOf<char>(
                {{5, rc::gen::element('a', 'b', 'c', ' ')}, {1, rc::gen::arbitrary<char>()}}));
}

RC_GTEST_PROP(EncoderProperty, DecodesWhatItEncodes, ()) {
  static const auto kTokenizer = SmallTokenizer::OfBytes(kPairs).Parsed();
  const std::string text = RandomBytes();
  RC_ASSERT(kTokenizer->Decode(EncodeAll(*kTokenizer, text)) == text);
}

// The whole text as one word, which the encoder may cut and the naive one does not.
RC_GTEST_PROP(EncoderProperty, MergesCharactersAsANaiveOneDoes, ()) {
  static const Pairs kMerges = {{"a", "b"},  {"\u4e2d", "a"}, {"b", "_"}, {"_", "_"},
                                {"ab", "_"}, {"c", "\u4e2d"}, {"__", "a"}};
  static const auto kTokenizer = SmallTokenizer::OfCharacters("abc_\u4e2d\u00e9", kMerges).Parsed();
  const auto size = *rc::gen::inRange<size_t>(0, 90);
  const Strings symbols = *rc::gen::container<Strings>(
      size, rc::gen::elementOf(Strings{"a", "b", "c", "_", "\u4e2d", "\u00e9"}));
  std::string text;
  for (const std::string& symbol : symbols) text += symbol;
  RC_ASSERT(Pieces(*kTokenizer, text) == NaiveMerged(symbols, kMerges));
}

// The same encoder remembers words; a new one does not.
RC_GTEST_PROP(EncoderProperty, RemembersNothingWrong, ()) {
  static const auto kTokenizer = SmallTokenizer::OfBytes(kPairs).Parsed();
  static Encoder kept(*kTokenizer);
  const std::string text = RandomBytes();
  RC_ASSERT(*kept.Encode(text, false) == EncodeAll(*kTokenizer, text));
}

}  // namespace
}  // namespace fathom
