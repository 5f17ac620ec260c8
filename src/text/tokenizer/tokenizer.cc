#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "text/tokenizer/llama_pipeline.h"
#include "text/tokenizer/tokenizer_json.h"
#include "text/tokenizer/tokenizer_parts.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

bool IsAsciiAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Gives added tokens their ids: those of the vocabulary, or the next that are free. What the file
// says about it does not count, as in the original.
struct AddedTokens {
  const Vocabulary& vocabulary;
  std::vector<AddedToken> tokens;
  Vocabulary texts;

  void Add(AddedToken token) {
    if (token.content.empty()) return;
    if (const TokenId known = texts.Find(token.content); known != Vocabulary::kNone) {
      token.id = known;
      *std::ranges::find(tokens, known, &AddedToken::id) = std::move(token);
      return;
    }
    const TokenId in_model = vocabulary.Find(token.content);
    token.id = in_model != Vocabulary::kNone ? in_model : NextId();
    texts.Add(token.id, token.content);
    tokens.push_back(std::move(token));
  }

  TokenId NextId() const {
    return static_cast<TokenId>(std::max(vocabulary.size(), texts.id_limit()));
  }
};

// The special ones come first: of two that look the same they count.
AddedTokenMatcher MatcherOf(const std::vector<AddedToken>& all, bool normalized,
                            const std::vector<std::string>& contents) {
  std::vector<AddedToken> tokens;
  std::vector<std::string> texts;
  for (const bool special : {true, false}) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].special != special || all[i].normalized != normalized) continue;
      tokens.push_back(all[i]);
      texts.push_back(contents[i]);
    }
  }
  return {std::move(tokens), std::move(texts)};
}

Result<std::vector<std::string>> ContentsOf(const std::vector<AddedToken>& tokens,
                                            const Normalizer& normalizer) {
  std::vector<std::string> contents;
  for (const AddedToken& token : tokens) {
    if (!token.normalized) {
      contents.push_back(token.content);
      continue;
    }
    TRY(std::string content, normalizer.Apply(token.content));
    contents.push_back(std::move(content));
  }
  return contents;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<const Tokenizer>> Tokenizer::Parse(std::string_view tokenizer_json,
                                                          std::span<const AddedToken> more,
                                                          const LlamaPipeline* llama) {
  TRY(TokenizerJson read, TokenizerJson::Read(tokenizer_json));
  if (llama != nullptr) UseLlamaPipeline(*llama, read);
  TRY(Normalizer normalizer, Normalizer::Parse(read.normalizer));
  TRY(PreTokenizer pre, PreTokenizer::Parse(read.pre_tokenizer));
  TRY(PostProcessor post, PostProcessor::Parse(read.post_processor));
  TRY(Decoder decoder, Decoder::Parse(read.decoder));
  AddedTokens added{read.rules.vocabulary, {}, {}};
  for (AddedToken& token : read.added_tokens) added.Add(std::move(token));
  for (const AddedToken& token : more) {
    if (added.texts.Find(token.content) == Vocabulary::kNone) added.Add(token);
  }
  TRY(const std::vector<std::string> contents, ContentsOf(added.tokens, normalizer));
  AddedTokenMatcher raw = MatcherOf(added.tokens, false, contents);
  AddedTokenMatcher normalized = MatcherOf(added.tokens, true, contents);
  const bool cuts = normalizer.keeps_lines_apart() && normalized.keeps_lines_apart() &&
                    (pre.pattern() || (!pre.byte_level() && pre.knows_only_spaces()));
  const bool byte_level = pre.byte_level();
  return std::unique_ptr<const Tokenizer>(new Tokenizer(std::make_unique<const Parts>(
      Bpe(std::move(read.rules), byte_level), std::move(normalizer), std::move(pre),
      std::move(post), std::move(decoder), std::move(added.tokens), std::move(added.texts),
      std::move(raw), std::move(normalized), cuts)));
}

void Tokenizer::Split(std::string_view text, std::vector<TextPiece>& out) const {
  if (!parts_->normalizer.is_identity() || parts_->normalized.empty()) {
    return parts_->raw.Split(text, out);
  }
  std::vector<TextPiece> pieces;
  parts_->raw.Split(text, pieces);
  for (const TextPiece& piece : pieces) {
    if (piece.is_token()) {
      out.push_back(piece);
    } else {
      parts_->normalized.Split(piece.text, out);
    }
  }
}

bool IsVisibleAscii(char c) { return c > ' ' && c <= '~'; }

// No pattern joins a line's end and a letter or digit behind it, nor looks across: what it matches
// before the letter ends there, and the letter begins a match. Only GPT-2's takes the last of
// several blanks for itself when something follows them.
size_t Tokenizer::NextCut(std::string_view text, size_t from) const {
  if (!parts_->cuts_at_lines) return text.size();
  const std::optional<WordPattern> pattern = parts_->pre_tokenizer.pattern();
  const bool after_one_blank = pattern == WordPattern::kGpt2;
  for (size_t at = text.find('\n', from == 0 ? 0 : from - 1); at != text.npos;
       at = text.find('\n', at + 1)) {
    const size_t cut = at + 1;
    if (cut >= text.size() || !IsAsciiAlphanumeric(text[cut])) continue;
    if (after_one_blank && (at == 0 || !IsVisibleAscii(text[at - 1]))) continue;
    if (!pattern && !parts_->bpe.AreApart('\n', static_cast<uint8_t>(text[cut]))) continue;
    return cut;
  }
  return text.size();
}

std::span<const TokenId> Tokenizer::prefix() const { return parts_->post_processor.prefix; }
std::span<const TokenId> Tokenizer::suffix() const { return parts_->post_processor.suffix; }

std::optional<TokenId> Tokenizer::Find(std::string_view content) const {
  TokenId found = parts_->added_texts.Find(content);
  if (found == Vocabulary::kNone) found = parts_->bpe.vocabulary().Find(content);
  return found == Vocabulary::kNone ? std::nullopt : std::optional(found);
}

std::optional<std::string_view> Tokenizer::TextOf(TokenId id) const {
  const std::optional<std::string_view> added = parts_->added_texts.TextOf(id);
  return added ? added : parts_->bpe.vocabulary().TextOf(id);
}

std::string Tokenizer::Piece(TokenId id) const {
  const std::optional<std::string_view> text = TextOf(id);
  return text ? parts_->decoder.Piece(*text) : std::string();
}

std::string Tokenizer::Decode(std::span<const TokenId> tokens) const {
  std::string out;
  bool first = true;
  for (const TokenId id : tokens) {
    const std::optional<std::string_view> text = TextOf(id);
    if (!text) continue;
    parts_->decoder.Append(*text, std::exchange(first, false), out);
  }
  parts_->decoder.Finish(out);
  return out;
}

std::span<const AddedToken> Tokenizer::added_tokens() const { return parts_->added; }

size_t Tokenizer::vocabulary_size() const {
  return std::max(parts_->bpe.vocabulary().id_limit(), parts_->added_texts.id_limit());
}

}  // namespace fathom
