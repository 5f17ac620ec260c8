// Which tokens does this text have? A model's tokenizer.json, run as the Hugging Face library runs
// it: added tokens, normalizer, pre-tokenizer, byte-pair merges, post-processor.
//
// Encoding is split at its seams, so that a caller need not do twice what it has done before:
//
//   Split()       cuts text at added tokens ("<|im_start|>"): they are hard boundaries, and what
//                 lies between two of them is encoded by itself
//   EncodeText()  the tokens of one such piece
//   prefix(), suffix()  what the post-processor puts around a prompt (the BOS token)
//
// Errors   Parse(): kCaller, naming what is wrong or not supported (blame stays the same; `what`
//          begins with "not supported: " for the latter). EncodeText(): a word that is longer than
//          kLongestWord after it could be cut nowhere.
// Memory   Tens of MiB per vocabulary.
// Threads  Immutable once parsed. Each thread has an Encoder of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokens/token.h"

namespace fathom {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = false;
  bool special = false;
};

// A part of a text: an added token, or what lies between two of them.
struct TextPiece {
  static constexpr TokenId kText = 0xffffffff;

  std::string_view text;
  TokenId token = kText;

  bool is_token() const { return token != kText; }
};

// What transformers 5 builds for the class LlamaTokenizer from a file's vocabulary and merges, in
// place of what the file says is done before.
struct LlamaPipeline {
  std::string prepend_scheme;  // of the word mark: "always", "first" or "never"
};

class Tokenizer {
 public:
  static constexpr size_t kLongestWord = size_t{256} << 10;
  static constexpr size_t kMaxFile = size_t{256} << 20;
  static constexpr size_t kMaxVocabulary = size_t{4} << 20;
  // How the error begins where a file is well, but needs something that is not done here.
  static constexpr std::string_view kNotSupported = "not supported: ";

  // `more` are the added tokens of tokenizer_config.json; those that the file has are passed over.
  // `llama`, which may be null, is ignored for byte-level files, as in transformers.
  static Result<std::unique_ptr<const Tokenizer>> Parse(std::string_view tokenizer_json,
                                                        std::span<const AddedToken> more = {},
                                                        const LlamaPipeline* llama = nullptr);
  ~Tokenizer();

  // Appends the parts of `text`, in order and without gaps (lstrip and rstrip tokens include the
  // space that they take).
  void Split(std::string_view text, std::vector<TextPiece>& out) const;

  // Where a long piece of text can be cut without changing its tokens: the first such place at or
  // after `from`, or text.size(). The left part always ends after a line.
  size_t NextCut(std::string_view text, size_t from) const;

  std::span<const TokenId> prefix() const;
  std::span<const TokenId> suffix() const;

  // Of "<s>", in the added tokens or the vocabulary.
  std::optional<TokenId> Find(std::string_view content) const;
  // The text of a token as bytes: " the", "<|eot_id|>"; pieces of characters are not UTF-8. Empty
  // for ids that there are not.
  std::string Piece(TokenId id) const;
  // The text of tokens, special ones included.
  std::string Decode(std::span<const TokenId> tokens) const;

  std::span<const AddedToken> added_tokens() const;
  size_t vocabulary_size() const;  // the largest id, and one

 private:
  friend class Encoder;
  struct Parts;
  std::optional<std::string_view> TextOf(TokenId id) const;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);

  std::unique_ptr<const Parts> parts_;
};

// One thread's room for encoding, and its memory of words that it has met. The tokenizer must
// outlive it.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  ~Encoder();

  // Appends the tokens of a piece that Split() found. `first`: it begins the prompt. On an error
  // `out` is as it was.
  Result<void> EncodeText(std::string_view text, bool first, std::vector<TokenId>& out);

  // Everything at once: Split(), EncodeText(), and prefix() and suffix() if `add_special`.
  Result<std::vector<TokenId>> Encode(std::string_view text, bool add_special);

 private:
  struct Room;
  std::unique_ptr<Room> room_;
};

}  // namespace fathom
