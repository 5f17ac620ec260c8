#include "text/tokenizer/bpe.h"

#include <fmt/format.h>

#include <utility>

#include "text/tokenizer/byte_alphabet.h"
#include "text/unicode/utf8.h"

namespace fathom {

Bpe::Bpe(BpeRules rules, bool byte_level)
    : rules_(std::move(rules)), byte_level_(byte_level), merges_(rules_.merges.size()) {
  ascii_.fill(Vocabulary::kNone);
  bytes_.fill(Vocabulary::kNone);
  byte_tokens_.fill(Vocabulary::kNone);
  std::vector<bool> seen(rules_.vocabulary.id_limit());
  for (const MergeRule& rule : rules_.merges) {
    merges_.Add(rule.left, rule.right, rule.token);
    if (byte_level_ || seen[rule.token]) continue;
    seen[rule.token] = true;
    joined_.Add(*rules_.vocabulary.TextOf(rule.token));
  }
  rules_.merges = {};
  AddCharacters();
  AddByteTokens();
  AddWords();
}

void Bpe::AddCharacters() {
  for (TokenId id = 0; id < rules_.vocabulary.id_limit(); ++id) {
    const std::optional<std::string_view> text = rules_.vocabulary.TextOf(id);
    if (!text || text->empty()) continue;
    const CodePoint first = FirstCodePoint(*text);
    if (first.length != text->size()) continue;
    if (first.value < ascii_.size()) ascii_[first.value] = id;
    characters_[first.value] = id;
  }
  for (uint32_t byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = TokenOfCharacter(CharacterOfByte(static_cast<uint8_t>(byte)));
  }
}

void Bpe::AddByteTokens() {
  if (!rules_.byte_fallback) return;
  for (size_t byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = rules_.vocabulary.Find(fmt::format("<0x{:02X}>", byte));
  }
}

// A word that is a token need not be merged, if merging it gives that token. It does for every
// token that training made, but a vocabulary may have others.
void Bpe::AddWords() {
  Merger merger(merges_);
  std::vector<TokenId> symbols;
  for (TokenId id = 0; id < rules_.vocabulary.id_limit(); ++id) {
    const std::optional<std::string_view> text = rules_.vocabulary.TextOf(id);
    if (!text || text->empty()) continue;
    const std::optional<std::string> bytes =
        byte_level_ ? BytesOfCharacters(*text) : std::string(*text);
    if (!bytes) continue;
    if (rules_.ignore_merges && byte_level_) {
      words_.Add(id, *bytes);
      continue;
    }
    if (rules_.ignore_merges) joined_.Add(*text);
    symbols.clear();
    AppendSymbols(*bytes, symbols);
    merger.Run(symbols);
    if (symbols.size() == 1 && symbols[0] == id) words_.Add(id, *bytes);
  }
}

void Bpe::AppendSymbols(std::string_view word, std::vector<TokenId>& out) const {
  if (!byte_level_) return AppendCharacters(word, out);
  const size_t before = out.size();
  for (const char c : word) {
    const TokenId token = bytes_[static_cast<uint8_t>(c)];
    if (token == Vocabulary::kNone) {
      out.resize(before);
      return AppendCharacters(CharactersOfBytes(word), out);
    }
    out.push_back(token);
  }
}

TokenId Bpe::TokenOfCharacter(uint32_t character) const {
  if (character < ascii_.size()) return ascii_[character];
  const auto found = characters_.find(character);
  return found == characters_.end() ? Vocabulary::kNone : found->second;
}

// The unknown token waits until a known character comes, so that those behind it can join it.
// Tokens for bytes do not make it come out, which puts them before it: so does the original.
void Bpe::AppendCharacters(std::string_view word, std::vector<TokenId>& out) const {
  bool waiting = false;
  while (!word.empty()) {
    const CodePoint next = FirstCodePoint(word);
    const std::string_view character = word.substr(0, next.length);
    word.remove_prefix(next.length);
    const TokenId token = TokenOfCharacter(next.value);
    if (token != Vocabulary::kNone) {
      if (std::exchange(waiting, false)) out.push_back(*rules_.unknown);
      out.push_back(token);
    } else if (!AppendBytes(character, out) && rules_.unknown) {
      if (waiting && !rules_.fuse_unknown) out.push_back(*rules_.unknown);
      waiting = true;
    }
  }
  if (waiting) out.push_back(*rules_.unknown);
}

bool Bpe::AppendBytes(std::string_view character, std::vector<TokenId>& out) const {
  for (const char c : character) {
    if (byte_tokens_[static_cast<uint8_t>(c)] == Vocabulary::kNone) return false;
  }
  for (const char c : character) out.push_back(byte_tokens_[static_cast<uint8_t>(c)]);
  return true;
}

// Both must have tokens of their own: whatever becomes the unknown token, or bytes, has another
// text than the one that neighbours were looked for in.
bool Bpe::AreApart(uint32_t left, uint32_t right) const {
  return !joined_.Contains(left, right) && TokenOfCharacter(left) != Vocabulary::kNone &&
         TokenOfCharacter(right) != Vocabulary::kNone;
}

size_t Bpe::EndOfPart(std::string_view text, size_t at) const {
  if (byte_level_) return text.size();
  CodePoint left = FirstCodePoint(text.substr(at));
  for (at += left.length; at < text.size(); at += left.length) {
    const CodePoint right = FirstCodePoint(text.substr(at));
    if (AreApart(std::exchange(left, right).value, right.value)) break;
  }
  return at;
}

TokenId Bpe::WholeWord(std::string_view word) const {
  const bool counts = rules_.ignore_merges && !byte_level_;
  return counts ? rules_.vocabulary.Find(word) : Vocabulary::kNone;
}

void WordEncoder::Append(std::string_view word, std::vector<TokenId>& out) {
  if (word.empty()) return;
  if (word.size() <= ShortWords::kLongest) return AppendShort(word, out);
  if (word.size() <= LongWords::kLongest) return AppendLong(word, out);
  Find(word);
  out.insert(out.end(), symbols_.begin(), symbols_.end());
}

void WordEncoder::AppendShort(std::string_view word, std::vector<TokenId>& out) {
  const ShortWords::Key key = ShortWords::KeyOf(word);
  if (short_words_.Recall(key, out)) return;
  const size_t before = out.size();
  AppendLong(word, out);
  const std::span<const TokenId> tokens = std::span(out).subspan(before);
  if (tokens.size() <= ShortWords::kMostTokens) short_words_.Keep(key, tokens);
}

void WordEncoder::AppendLong(std::string_view word, std::vector<TokenId>& out) {
  const LongWords::Key key = LongWords::KeyOf(word);
  if (long_words_.Recall(key, out)) return;
  Find(word);
  const bool is_short = word.size() <= ShortWords::kLongest;
  const size_t least = is_short ? ShortWords::kMostTokens + 1 : 1;
  if (symbols_.size() >= least && symbols_.size() <= LongWords::kMostTokens) {
    long_words_.Keep(key, symbols_);
  }
  out.insert(out.end(), symbols_.begin(), symbols_.end());
}

void WordEncoder::Find(std::string_view word) {
  symbols_.clear();
  if (const TokenId whole = bpe_.words_.Find(word); whole != Vocabulary::kNone) {
    symbols_.push_back(whole);
    return;
  }
  bpe_.AppendSymbols(word, symbols_);
  merger_.Run(symbols_);
}

}  // namespace fathom
