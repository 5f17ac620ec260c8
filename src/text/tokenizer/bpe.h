// The byte-pair model: which tokens does a word have?
//
// A word begins as bytes (of a byte-level model) or as characters; those that the vocabulary does
// not have become tokens for their bytes, or the unknown token, or nothing. Then neighbours merge.
//
// Errors   None: every word has its tokens.
// Memory   About 100 bytes per token.
// Threads  Immutable. Each thread has a WordEncoder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/joined_characters.h"
#include "text/tokenizer/merge_table.h"
#include "text/tokenizer/merger.h"
#include "text/tokenizer/vocabulary.h"
#include "text/tokenizer/word_memory.h"

namespace fathom {

struct MergeRule {
  TokenId left;
  TokenId right;
  TokenId token;
};

struct BpeRules {
  Vocabulary vocabulary;  // as the file writes it
  std::vector<MergeRule> merges;
  std::optional<TokenId> unknown;
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

class Bpe {
 public:
  Bpe(BpeRules rules, bool byte_level);

  const Vocabulary& vocabulary() const { return rules_.vocabulary; }
  bool byte_level() const { return byte_level_; }

  // The token that a whole word is though merging would not make it, before it is cut into parts.
  // kNone: there is none, or its one part is the word.
  TokenId WholeWord(std::string_view word) const;
  // Where the part of `text` that begins at `at` ends: no merge crosses its end. Whole texts of
  // byte-level models are one part.
  size_t EndOfPart(std::string_view text, size_t at) const;
  // Whether two characters of a text, next to each other, are never joined.
  bool AreApart(uint32_t left, uint32_t right) const;

 private:
  friend class WordEncoder;

  void AddCharacters();
  void AddByteTokens();
  void AddWords();
  void AppendSymbols(std::string_view word, std::vector<TokenId>& out) const;
  void AppendCharacters(std::string_view word, std::vector<TokenId>& out) const;
  bool AppendBytes(std::string_view character, std::vector<TokenId>& out) const;
  TokenId TokenOfCharacter(uint32_t character) const;

  BpeRules rules_;
  bool byte_level_;
  MergeTable merges_;
  Vocabulary words_;                // words that are one token
  std::array<TokenId, 256> bytes_;  // of a byte-level model
  std::array<TokenId, 128> ascii_;
  std::unordered_map<uint32_t, TokenId> characters_;
  std::array<TokenId, 256> byte_tokens_;  // <0x00>
  JoinedCharacters joined_;
};

// One thread's room for it.
class WordEncoder {
 public:
  explicit WordEncoder(const Bpe& bpe) : bpe_(bpe), merger_(bpe.merges_) {}

  void Append(std::string_view word, std::vector<TokenId>& out);

 private:
  // Half a MiB each. Most words are in the first, and two of its slots in a cache line.
  using ShortWords = WordMemory<2, 3, size_t{16} << 10>;
  using LongWords = WordMemory<4, 7, size_t{8} << 10>;

  void AppendShort(std::string_view word, std::vector<TokenId>& out);
  void AppendLong(std::string_view word, std::vector<TokenId>& out);
  // Leaves them in symbols_.
  void Find(std::string_view word);

  const Bpe& bpe_;
  Merger merger_;
  ShortWords short_words_;
  LongWords long_words_;
  std::vector<TokenId> symbols_;
};

}  // namespace fathom
