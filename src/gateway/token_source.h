// Where do the tokens of a text or a chat come from, if the router has not got the model's files?
// The engines' own endpoint answers (engine_tokenizer.h).
//
// Threads  One source per loop. A question may be asked while others are open.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string_view>
#include <vector>

#include "fleet/fleet.h"
#include "gateway/request_fields.h"
#include "net/task.h"
#include "tokens/token.h"

namespace fathom {

struct TokenQuestion {
  std::string_view model;  // empty if the request names none
  PromptFields parts;  // either `prompt`, which is one text, or `messages`, and what goes with it
  std::shared_ptr<const FleetSnapshot> fleet;
};

enum class TokenFailure : uint8_t {
  kTimeout,      // no answer in time
  kRefused,      // the question is at fault: no such model, not a chat
  kUnsupported,  // nobody who serves the model can tokenize
  kError,        // whoever was asked could not answer, or nobody could be asked
  kOverload,     // too much is being asked already
};
constexpr size_t kTokenFailures = 5;

using TokenAnswer = std::expected<std::vector<TokenId>, TokenFailure>;

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // The question, and what it points to, must stay until the task has ended.
  virtual Task<TokenAnswer> Tokenize(const TokenQuestion& question, TimePoint deadline) = 0;
  // A request goes on without the tokens that it asked for.
  virtual void Miss(std::string_view /*model*/, TokenFailure /*reason*/, TimePoint /*now*/) {}
};

}  // namespace fathom
