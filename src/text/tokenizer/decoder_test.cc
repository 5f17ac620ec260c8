#include "text/tokenizer/decoder.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

Result<Decoder> Read(std::string_view json) { return Decoder::Parse(*Json::Parse(json)); }

std::string Decode(std::string_view json, const std::vector<std::string>& tokens) {
  const Result<Decoder> decoder = Read(json);
  EXPECT_TRUE(decoder) << decoder.error().what;
  std::string out;
  bool first = true;
  for (const std::string& token : tokens) {
    decoder->Append(token, first, out);
    first = false;
  }
  decoder->Finish(out);
  return out;
}

constexpr std::string_view kSentencePiece =
    R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},"content":" "},
        {"type":"ByteFallback"},{"type":"Fuse"},
        {"type":"Strip","content":" ","start":1,"stop":0}]})";

TEST(Decoder, TurnsCharactersIntoBytes) {
  EXPECT_EQ(Decode(R"({"type":"ByteLevel"})", {"\u0120the", "\u00e4", "\u00b8"}), " the\xe4\xb8");
  EXPECT_EQ(Decode(R"({"type":"ByteLevel"})", {"<\uff5c>"}), "<\uff5c>") << "not of the alphabet";
}

TEST(Decoder, PutsSentencePiecesTogether) {
  EXPECT_EQ(Decode(kSentencePiece, {"\u2581\u2581a", "\u2581b", "<0xE4>", "<0xb8>", "<0x1>"}),
            " a b\xe4\xb8<0x1>");
  EXPECT_EQ(Read(kSentencePiece)->Piece("\u2581a"), " a") << "wherever it stands";
}

TEST(Decoder, DropsTheSpaceThatMetaspaceAdded) {
  EXPECT_EQ(
      Decode(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"always"})", {"_a", "_b"}),
      "a b");
  EXPECT_EQ(Decode(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"never"})", {"_a"}),
            " a");
}

TEST(Decoder, PutsSpacesBetweenTokensWhenThereIsNone) {
  EXPECT_EQ(Decode("null", {"a", "b"}), "a b");
}

TEST(Decoder, RefusesWhatItDoesNotKnowByName) {
  EXPECT_EQ(Read(R"({"type":"WordPiece"})").error().what, "not supported: decoder WordPiece");
  EXPECT_EQ(Read(R"({"type":"Replace","pattern":{"Regex":"a"},"content":""})").error().what,
            "not supported: decoder Replace with an expression");
  EXPECT_EQ(Read(R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"ByteFallback"}]})")
                .error()
                .what,
            "not supported: decoder ByteFallback behind Fuse");
  EXPECT_EQ(Read(R"({"type":"Strip","content":" ","start":-1,"stop":0})").error().what,
            "'start' is not a number");
}

}  // namespace
}  // namespace fathom
