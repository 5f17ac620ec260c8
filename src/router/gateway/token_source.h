// Where do the tokens of a text or a chat come from, if the router does not have the model's files?
// From the engines' own endpoint (engine_tokenizer.h).
//
// Threads  One source per loop. A question may be asked while others are open.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/net/task.h"
#include "router/fleet/fleet.h"
#include "router/gateway/request_fields.h"
#include "text/tokens/token.h"

namespace fathom {

struct TokenQuestion {
  std::string_view model;  // empty if the request names none
  PromptFields parts;      // either `prompt`, which is one text, or a chat in the form of its API
  std::shared_ptr<const FleetSnapshot> fleet;
  EngineKind engine = EngineKind::kUnknown;  // of the model's workers: it decides what is asked
  std::optional<std::string> reasoning_parser = {};  // of SGLang; see LanguageModel::Manner
};

enum class TokenFailure : uint8_t {
  kTimeout,      // no answer in time
  kRefused,      // the question is invalid: no such model, not a chat
  kUnsupported,  // no worker of the model can tokenize
  kError,        // the asked workers failed, or none could be asked
  kOverload,     // too many questions are open
};
constexpr size_t kTokenFailures = 5;

using TokenAnswer = std::expected<std::vector<TokenId>, TokenFailure>;

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // The question, and everything it points to, must stay valid until the task has ended.
  virtual Task<TokenAnswer> Tokenize(const TokenQuestion& question, TimePoint deadline) = 0;
  // A request continues without its tokens.
  virtual void Miss(std::string_view /*model*/, TokenFailure /*reason*/, TimePoint /*now*/) {}
};

}  // namespace fathom
