// Does the tokenizer here make the same tokens of a text as the engine's?
//
// A few fixed texts and one fixed chat, ours against POST /tokenize: an engine whose template, BOS
// or vocabulary is another stores blocks that no prompt will ever find.
//
// Threads  On the loop; encoding a few lines takes no time.
// Memory   Answers of at most kMaxTokens ids.
// Errors   None: what could not be asked is said in `problem`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/doctor/read_only_client.h"
#include "text/model/language_model.h"

namespace fathom {

struct TokenComparison {
  std::string name;     // "a sentence", "a chat"
  bool asked = false;   // both sides have answered
  std::string problem;  // why not
  bool equal = false;
  size_t ours = 0;  // how many
  size_t theirs = 0;
  // Where they differ.
  size_t position = 0;
  std::optional<TokenId> our_id;  // nothing: ours end here
  std::optional<TokenId> their_id;
  std::string our_piece;
  std::string their_piece;
  bool only_bos = false;  // one side has a first token that the other has not, and no more
};

struct TokenLook {
  static constexpr size_t kMaxTokens = 65536;

  std::string problem;  // why nothing was compared
  std::vector<TokenComparison> comparisons;

  bool Compared() const;
  bool Differs() const;
};

Task<TokenLook> LookAtTokens(ReadOnlyClient& client, const LanguageModel& model, EngineKind engine,
                             std::string model_name);

// Fills in where two lists differ.
void Compare(std::span<const TokenId> ours, std::span<const TokenId> theirs,
             const Tokenizer& tokenizer, TokenComparison& comparison);

}  // namespace fathom
