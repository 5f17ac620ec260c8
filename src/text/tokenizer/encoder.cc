#include <utility>

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_parts.h"

namespace fathom {

struct Encoder::Room {
  explicit Room(const Tokenizer& which)
      : tokenizer(which), parts(*which.parts_), words(parts.bpe) {}

  Result<void> Normalized(std::string_view text, bool first, std::vector<TokenId>& out);
  Result<void> Text(std::string_view text, bool first, std::vector<TokenId>& out);
  Result<void> OneWord(std::string_view word, size_t offset, std::vector<TokenId>& out);

  const Tokenizer& tokenizer;
  const Tokenizer::Parts& parts;
  WordEncoder words;
  WordRoom cut;
  std::vector<TextPiece> pieces;
};

// Added tokens that are looked for behind the normalizer, and what lies between them.
Result<void> Encoder::Room::Normalized(std::string_view text, bool first,
                                       std::vector<TokenId>& out) {
  if (parts.normalizer.is_identity() || parts.normalized.empty()) return Text(text, first, out);
  pieces.clear();
  parts.normalized.Split(text, pieces);
  for (const TextPiece& piece : pieces) {
    if (piece.is_token()) {
      out.push_back(piece.token);
    } else {
      TRY_VOID(Text(piece.text, first && piece.text.data() == text.data(), out));
    }
  }
  return {};
}

Result<void> Encoder::Room::Text(std::string_view text, bool first, std::vector<TokenId>& out) {
  if (const std::optional<WordPattern> pattern = parts.pre_tokenizer.pattern()) {
    WordSplitter splitter(*pattern, text);
    for (size_t at = 0; at < text.size();) {
      const size_t end = splitter.EndOfWord(at);
      TRY_VOID(OneWord(text.substr(at, end - at), at, out));
      at = end;
    }
    return {};
  }
  if (parts.pre_tokenizer.is_identity()) return OneWord(text, 0, out);
  TRY_VOID(parts.pre_tokenizer.Cut(text, first, cut));
  size_t offset = 0;
  for (const Word& word : cut.words) {
    TRY_VOID(OneWord(word.text, offset, out));
    offset += word.text.size();
  }
  return {};
}

Result<void> Encoder::Room::OneWord(std::string_view word, size_t offset,
                                    std::vector<TokenId>& out) {
  if (const TokenId whole = parts.bpe.WholeWord(word); whole != Vocabulary::kNone) {
    out.push_back(whole);
    return {};
  }
  for (size_t at = 0; at < word.size();) {
    const size_t end = parts.bpe.EndOfPart(word, at);
    if (end - at > Tokenizer::kLongestWord) {
      return Fail(Blame::kCaller,
                  "a word of {} bytes, from byte {} on, is longer than the {} that words may have",
                  end - at, offset + at, Tokenizer::kLongestWord);
    }
    words.Append(word.substr(at, end - at), out);
    at = end;
  }
  return {};
}

Encoder::Encoder(const Tokenizer& tokenizer) : room_(std::make_unique<Room>(tokenizer)) {}
Encoder::~Encoder() = default;

Result<void> Encoder::EncodeText(std::string_view text, bool first, std::vector<TokenId>& out) {
  const size_t before = out.size();
  Result<void> done;
  if (room_->parts.normalizer.Keeps(text)) {
    done = room_->Normalized(text, first, out);
  } else {
    TRY(const std::string normalized, room_->parts.normalizer.Apply(text));
    done = room_->Normalized(normalized, first, out);
  }
  if (!done) out.resize(before);
  return done;
}

Result<std::vector<TokenId>> Encoder::Encode(std::string_view text, bool add_special) {
  const Tokenizer& tokenizer = room_->tokenizer;
  std::vector<TextPiece> pieces;
  tokenizer.Split(text, pieces);
  std::vector<TokenId> out;
  if (add_special) out.assign(tokenizer.prefix().begin(), tokenizer.prefix().end());
  for (const TextPiece& piece : pieces) {
    if (piece.is_token()) {
      out.push_back(piece.token);
    } else {
      TRY_VOID(EncodeText(piece.text, piece.text.data() == text.data(), out));
    }
  }
  if (add_special) out.insert(out.end(), tokenizer.suffix().begin(), tokenizer.suffix().end());
  return out;
}

}  // namespace fathom
