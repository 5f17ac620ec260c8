#include "text/tokenizer/normalizer.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

Result<Normalizer> ReadNormalizer(std::string_view json) {
  return Normalizer::Parse(*Json::Parse(json));
}

std::string Apply(std::string_view json, std::string_view text) {
  const Result<Normalizer> normalizer = ReadNormalizer(json);
  EXPECT_TRUE(normalizer) << normalizer.error().what;
  const Result<std::string> out = normalizer->Apply(text);
  return out ? *out : out.error().what;
}

std::string NormalizerError(std::string_view json) {
  const Result<Normalizer> normalizer = ReadNormalizer(json);
  return normalizer ? "parsed" : normalizer.error().what;
}

TEST(Normalizer, DoesNothingWhenThereIsNone) {
  EXPECT_TRUE(ReadNormalizer("null")->is_identity());
  EXPECT_TRUE(ReadNormalizer(R"({"type":"Sequence","normalizers":[]})")->is_identity());
  EXPECT_TRUE(ReadNormalizer("null")->Keeps("e\u0301"));
  EXPECT_EQ(Apply("null", "e\u0301"), "e\u0301");
}

TEST(Normalizer, HasTheFourForms) {
  EXPECT_EQ(Apply(R"({"type":"NFC"})", "e\u0301"), "\u00e9");
  EXPECT_EQ(Apply(R"({"type":"NFD"})", "\u00e9"), "e\u0301");
  EXPECT_EQ(Apply(R"({"type":"NFKC"})", "\ufb01"), "fi");
  EXPECT_EQ(Apply(R"({"type":"NFKD"})", "\ufb01\u00e9"), "fie\u0301");
}

TEST(Normalizer, ReplacesTextsAndExpressions) {
  EXPECT_EQ(Apply(R"({"type":"Replace","pattern":{"String":"ab"},"content":"-"})", "abcab"), "-c-");
  EXPECT_EQ(Apply(R"({"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "})", "a \n b"),
            "a b");
}

TEST(Normalizer, PrependsToWhatIsNotEmpty) {
  constexpr std::string_view kPrepend = R"({"type":"Prepend","prepend":"_"})";
  EXPECT_EQ(Apply(kPrepend, "a"), "_a");
  EXPECT_EQ(Apply(kPrepend, ""), "");
}

TEST(Normalizer, StripsWhiteSpace) {
  EXPECT_EQ(Apply(R"({"type":"Strip","strip_left":true,"strip_right":true})", "\u3000 a b\u00a0\n"),
            "a b");
  EXPECT_EQ(Apply(R"({"type":"Strip","strip_left":false,"strip_right":true})", " a "), " a");
  EXPECT_EQ(Apply(R"({"type":"Strip","strip_left":true,"strip_right":false})", "  "), "");
  EXPECT_EQ(Apply(R"({"type":"Strip"})", "\xa0 a \xa0"), "\xa0 a \xa0") << "bytes are no space";
}

TEST(Normalizer, DoesOneStepAfterTheOther) {
  EXPECT_EQ(Apply(R"({"type":"Sequence","normalizers":[{"type":"Lowercase"},
                      {"type":"Replace","pattern":{"String":"a"},"content":"B"}]})",
                  "AA"),
            "BB");
}

TEST(Normalizer, SaysWhichTextsItKeeps) {
  const Result<Normalizer> nfc = ReadNormalizer(R"({"type":"NFC"})");
  EXPECT_TRUE(nfc->Keeps("plain"));
  EXPECT_FALSE(nfc->Keeps("e\u0301"));
  EXPECT_FALSE(ReadNormalizer(R"({"type":"Lowercase"})")->Keeps("plain"));
}

TEST(Normalizer, KnowsWhetherLinesAreIndependent) {
  EXPECT_TRUE(ReadNormalizer(R"({"type":"NFKC"})")->keeps_lines_apart());
  EXPECT_TRUE(ReadNormalizer(R"({"type":"Replace","pattern":{"String":" "},"content":"_"})")
                  ->keeps_lines_apart());
  EXPECT_FALSE(ReadNormalizer(R"({"type":"Strip"})")->keeps_lines_apart());
  EXPECT_FALSE(ReadNormalizer(R"({"type":"Prepend","prepend":"_"})")->keeps_lines_apart());
  EXPECT_FALSE(ReadNormalizer(R"({"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "})")
                   ->keeps_lines_apart());
}

TEST(Normalizer, RefusesATextThatGrowsWithoutBounds) {
  const std::string json = R"({"type":"Replace","pattern":{"String":"a"},"content":")" +
                           std::string(10'000, 'b') + "\"}";
  EXPECT_EQ(Apply(json, std::string(1000, 'a')),
            "the normalizer makes a text of 1000 bytes too long");
}

TEST(Normalizer, RefusesWhatItDoesNotKnowByName) {
  EXPECT_EQ(NormalizerError(R"({"type":"Precompiled"})"), "not supported: normalizer Precompiled");
  EXPECT_EQ(NormalizerError(R"({"type":"Sequence","normalizers":[{"type":"Nmt"}]})"),
            "not supported: normalizer Nmt");
  EXPECT_EQ(NormalizerError(R"({"type":"Replace","content":""})"), "'pattern' is missing");
  EXPECT_EQ(NormalizerError(R"({"kind":"NFC"})"), "'type' is missing");
  EXPECT_EQ(NormalizerError("[]"), "'type' is missing");
  std::string deep = R"({"type":"NFC"})";
  for (int i = 0; i < 100; ++i) deep = R"({"type":"Sequence","normalizers":[)" + deep + "]}";
  EXPECT_EQ(NormalizerError(deep), "Sequences are nested too deeply");
}

}  // namespace
}  // namespace fathom
