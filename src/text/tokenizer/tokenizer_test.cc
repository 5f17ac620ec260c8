#include "text/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "testing/small_tokenizer.h"
#include "text/tokenizer/word_splitter.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using Strings = std::vector<std::string>;

constexpr std::string_view kAdded =
    R"([{"id":0,"content":"<s>","special":true},{"id":0,"content":"Word","normalized":true,
         "special":false}])";

SmallTokenizer Small() {
  SmallTokenizer small = SmallTokenizer::OfBytes({{"t", "h"}, {" ", "th"}, {" th", "e"}});
  small.added_tokens = kAdded;
  return small;
}

Strings SplitOf(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TextPiece> pieces;
  tokenizer.Split(text, pieces);
  Strings parts;
  for (const TextPiece& piece : pieces) {
    parts.push_back((piece.is_token() ? "!" : "") + std::string(piece.text));
  }
  return parts;
}

TEST(Tokenizer, GivesAddedTokensTheNextFreeIds) {
  const auto tokenizer = Small().Parsed();
  EXPECT_EQ(tokenizer->Find("<s>"), 259);
  EXPECT_EQ(tokenizer->Find("Word"), 260);
  EXPECT_EQ(tokenizer->vocabulary_size(), 261);
  EXPECT_EQ(tokenizer->added_tokens().size(), 2);
  EXPECT_EQ(tokenizer->Find("th"), 256);
  EXPECT_EQ(tokenizer->Find("nothing"), std::nullopt);
}

TEST(Tokenizer, GivesAddedTokensTheIdsThatTheVocabularyHas) {
  SmallTokenizer small = Small();
  small.added_tokens = R"([{"id":9,"content":"th"}])";
  EXPECT_EQ(Pieces(*small.Parsed(), "athb"), (Strings{"a", "th", "b"}));
  EXPECT_EQ(small.Parsed()->Find("th"), 256);
}

TEST(Tokenizer, TakesMoreAddedTokensThanTheFileHas) {
  const AddedToken more[] = {{.content = "<s>", .lstrip = true}, {.content = "<more>"}};
  const auto tokenizer = Tokenizer::Parse(Small().Json(), more);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->Find("<more>"), 261);
  EXPECT_EQ(SplitOf(**tokenizer, " <s><more>"), (Strings{" ", "!<s>", "!<more>"}));
}

TEST(Tokenizer, SplitsAtAddedTokens) {
  EXPECT_EQ(SplitOf(*Small().Parsed(), "a<s>bWord"), (Strings{"a", "!<s>", "b", "!Word"}));
  EXPECT_EQ(SplitOf(*Small().Parsed(), ""), Strings());
}

TEST(Tokenizer, LooksForNormalizedTokensInNormalizedText) {
  SmallTokenizer small = Small();
  small.normalizer = R"({"type":"Lowercase"})";
  const auto tokenizer = small.Parsed();
  EXPECT_EQ(SplitOf(*tokenizer, "a<s>WORD"), (Strings{"a", "!<s>", "WORD"}));
  EXPECT_THAT(EncodeAll(*tokenizer, "a<s>xWORD"), ElementsAre('a', 259, 'x', 260));
}

TEST(Tokenizer, PutsThePostProcessorsTokensAround) {
  SmallTokenizer small = Small();
  small.post_processor = R"({"type":"BertProcessing","cls":["<s>",259],"sep":["e",68]})";
  const auto tokenizer = small.Parsed();
  EXPECT_THAT(tokenizer->prefix(), ElementsAre(259));
  EXPECT_THAT(tokenizer->suffix(), ElementsAre(68));
  EXPECT_THAT(EncodeAll(*tokenizer, "th", true), ElementsAre(259, 256, 68));
  EXPECT_THAT(EncodeAll(*tokenizer, "th", false), ElementsAre(256));
}

TEST(Tokenizer, SaysWhatATokenIs) {
  const auto tokenizer = Small().Parsed();
  EXPECT_EQ(tokenizer->Piece(257), " th");
  EXPECT_EQ(tokenizer->Piece(259), "<s>");
  EXPECT_EQ(tokenizer->Piece(0x80), std::string(1, '\x80'));
  EXPECT_EQ(tokenizer->Piece(100'000), "");
  const TokenId tokens[] = {259, 258, 100'000, 256};
  EXPECT_EQ(tokenizer->Decode(tokens), "<s> theth");
}

TEST(Tokenizer, RefusesPartsByName) {
  SmallTokenizer small = Small();
  small.pre_tokenizer = R"({"type":"UnicodeScripts"})";
  EXPECT_EQ(small.Error(), "not supported: pre_tokenizer UnicodeScripts");
}

SmallTokenizer WithPattern(WordPattern pattern) {
  SmallTokenizer small = SmallTokenizer::OfBytes(
      {{"\n", "\n"}, {"\n", "a"}, {"\n\n", "a"}, {" ", "\n"}, {"1", "a"}, {"a", "a"}, {"/", "\n"}});
  small.SetPattern(pattern);
  return small;
}

void ExpectCutsChangeNothing(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<TokenId> whole = EncodeAll(tokenizer, text);
  Encoder encoder(tokenizer);
  std::vector<TokenId> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t cut = tokenizer.NextCut(text, at + 1);
    RC_ASSERT(cut > at && cut <= text.size());
    RC_ASSERT(cut == text.size() || text[cut - 1] == '\n');
    RC_ASSERT(encoder.EncodeText(std::string_view(text).substr(at, cut - at), at == 0, parts));
    at = cut;
  }
  RC_ASSERT(parts == whole);
}

std::string RandomText() {
  const auto size = *rc::gen::inRange<size_t>(0, 40);
  const Strings parts = {"\n", "\n", "a",      "a",      "1",      " ",      "\r", "/",
                         "!",  "'",  "\u00e9", "\u4e2d", "\u0301", "\u2028", "\t", "\xff"};
  std::string text;
  for (const std::string& part : *rc::gen::container<Strings>(size, rc::gen::elementOf(parts))) {
    text += part;
  }
  return text;
}

RC_GTEST_PROP(TokenizerProperty, CutsChangeNothing, ()) {
  static const std::vector<std::unique_ptr<const Tokenizer>> kTokenizers = [] {
    std::vector<std::unique_ptr<const Tokenizer>> made;
    for (const WordPattern pattern :
         {WordPattern::kGpt2, WordPattern::kOneDigit, WordPattern::kThreeDigits,
          WordPattern::kCased, WordPattern::kCasedEndings, WordPattern::kDeepSeek}) {
      made.push_back(WithPattern(pattern).Parsed());
    }
    SmallTokenizer nfc = WithPattern(WordPattern::kOneDigit);
    nfc.normalizer = R"({"type":"NFC"})";
    made.push_back(nfc.Parsed());
    made.push_back(
        SmallTokenizer::OfCharacters("\na1 /", {{"\n", "\n"}, {"\n", "1"}, {"a", "a"}}).Parsed());
    return made;
  }();
  const std::string text = RandomText();
  for (const auto& tokenizer : kTokenizers) ExpectCutsChangeNothing(*tokenizer, text);
}

TEST(Tokenizer, FindsCutsBehindLines) {
  const auto tokenizer = WithPattern(WordPattern::kOneDigit).Parsed();
  EXPECT_EQ(tokenizer->NextCut("a\nb\nc", 0), 2);
  EXPECT_EQ(tokenizer->NextCut("a\nb\nc", 2), 2);
  EXPECT_EQ(tokenizer->NextCut("a\nb\nc", 3), 4);
  EXPECT_EQ(tokenizer->NextCut("a\n b\n", 0), 5) << "a space could belong to either";
  EXPECT_EQ(tokenizer->NextCut("", 0), 0);
}

TEST(Tokenizer, CutsNowhereWhatItDoesNotKnow) {
  SmallTokenizer strips = WithPattern(WordPattern::kOneDigit);
  strips.normalizer = R"({"type":"Strip"})";
  EXPECT_EQ(strips.Parsed()->NextCut("a\nb", 0), 3);
  SmallTokenizer other = Small();
  other.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":true})";
  EXPECT_EQ(other.Parsed()->NextCut("a\nb", 0), 3);
  SmallTokenizer joined = SmallTokenizer::OfCharacters("\nab", {{"\n", "b"}});
  EXPECT_EQ(joined.Parsed()->NextCut("a\nb\na", 0), 4) << "a merge could cross the first";
}

}  // namespace
}  // namespace fathom
