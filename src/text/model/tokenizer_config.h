// What tokenizer_config.json and generation_config.json say beside the tokenizer: tokens with a
// role, tokens that are added to the vocabulary, and the chat templates.
//
// Whether a prompt begins with a BOS token is the post-processor's business, in tokenizer.json:
// what `add_bos_token` says here has had effect in some versions of transformers and not in others,
// the current one among them.
//
// Errors  kCaller, naming the file and the member.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/tokenizer.h"

namespace fathom {

struct TokenizerConfig {
  // "bos_token" and the like, in the order of the file: templates know them by these names.
  std::vector<std::pair<std::string, std::string>> roles;
  std::vector<AddedToken> added;
  // By name; "default" where there is only one.
  std::vector<std::pair<std::string, std::string>> templates;
  bool says_bos = false;  // which token begins a prompt, or that none does

  // What a class builds its own pipeline from; see ClassPipeline().
  std::string tokenizer_class;
  bool has_own_code = false;
  bool legacy = false;
  bool adds_prefix_space = true;
};

// The pipeline that transformers 5 builds for this class and this kind of model ("model_type" of
// config.json, or empty); nothing: the one in tokenizer.json.
std::optional<LlamaPipeline> ClassPipeline(const TokenizerConfig& config,
                                           std::string_view model_type);

Result<TokenizerConfig> ReadTokenizerConfig(std::string_view text);

// The id of the BOS token, where the file names it.
Result<std::optional<TokenId>> ReadGenerationBos(std::string_view text);

}  // namespace fathom
