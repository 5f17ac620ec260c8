// Any bytes: what was encoded decodes to the same bytes, pieces have no gaps, and cutting where
// NextCut() says changes nothing.
#include <memory>
#include <string>
#include <vector>

#include "testing/small_tokenizer.h"

namespace fathom {
namespace {

constexpr WordPattern kPatterns[] = {WordPattern::kGpt2,         WordPattern::kOneDigit,
                                     WordPattern::kThreeDigits,  WordPattern::kCased,
                                     WordPattern::kCasedEndings, WordPattern::kDeepSeek};

std::unique_ptr<const Tokenizer> Make(WordPattern pattern, const char* normalizer) {
  SmallTokenizer small = SmallTokenizer::OfBytes({{"a", "b"},
                                                  {"\n", "\n"},
                                                  {" ", "a"},
                                                  {"ab", "ab"},
                                                  {"\xe4", "\xb8"},
                                                  {"\n", "a"},
                                                  {"\xb8", "\xad"},
                                                  {"1", "2"},
                                                  {"\xe4\xb8", "\xad"},
                                                  {"'", "s"},
                                                  {" ", " "},
                                                  {"  ", "  "},
                                                  {"\xcc", "\x81"},
                                                  {"e", "\xcc\x81"},
                                                  {"a", "a"},
                                                  {"aa", "aa"},
                                                  {"/", "\n"},
                                                  {"abab", "c"}});
  small.SetPattern(pattern);
  small.normalizer = normalizer;
  small.added_tokens =
      R"([{"id":1,"content":"<s>","special":true},{"id":2,"content":"<s","lstrip":true},
          {"id":3,"content":"[x]","rstrip":true},{"id":4,"content":"ab","single_word":true},
          {"id":5,"content":"c/","normalized":true}])";
  return small.Parsed();
}

// With an encoder that stays, as a thread's does: its memory of words is long in the making.
struct Subject {
  std::unique_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<Encoder> encoder;
};

std::vector<Subject> MakeAll(const char* normalizer) {
  std::vector<Subject> made;
  for (const WordPattern pattern : kPatterns) {
    Subject& subject = made.emplace_back(Make(pattern, normalizer), nullptr);
    subject.encoder = std::make_unique<Encoder>(*subject.tokenizer);
  }
  return made;
}

std::vector<TextPiece> PiecesOf(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TextPiece> pieces;
  tokenizer.Split(text, pieces);
  std::string all;
  for (const TextPiece& piece : pieces) all += piece.text;
  CHECK(all == text);
  return pieces;
}

void CheckCuts(const Tokenizer& tokenizer, Encoder& encoder, std::string_view text) {
  std::vector<TokenId> whole;
  CHECK(encoder.EncodeText(text, false, whole));
  std::vector<TokenId> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t cut = tokenizer.NextCut(text, at + 1);
    CHECK(cut > at && cut <= text.size());
    CHECK(encoder.EncodeText(text.substr(at, cut - at), false, parts));
    at = cut;
  }
  CHECK(parts == whole);
}

// What the tokens decode to is the text, but for the space that some tokens take along.
void CheckPieces(const Subject& subject, std::string_view text, bool exact) {
  const Tokenizer& tokenizer = *subject.tokenizer;
  Encoder& encoder = *subject.encoder;
  for (const TextPiece& piece : PiecesOf(tokenizer, text)) {
    if (piece.is_token()) continue;
    CheckCuts(tokenizer, encoder, piece.text);
    std::vector<TokenId> ids;
    CHECK(encoder.EncodeText(piece.text, false, ids));
    if (exact) CHECK(tokenizer.Decode(ids) == piece.text);
  }
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  static const auto kPlain = MakeAll("null");
  static const auto kNormal = MakeAll(R"({"type":"NFC"})");
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const Subject& subject : kPlain) CheckPieces(subject, text, true);
  for (const Subject& subject : kNormal) CheckPieces(subject, text, false);
  return 0;
}
