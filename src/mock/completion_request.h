// What does this request ask a mock engine for?
//
// Memory  The body is scanned in place, however long its prompt is.
// Errors  kCaller, one line for the client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

// The members of all the OpenAI bodies that the mock understands.
struct CompletionRequest {
  static constexpr uint64_t kMaxTokens = 1'000'000;

  std::string model;  // empty if the body names none
  bool stream = false;
  bool include_usage = false;          // stream_options.include_usage
  std::optional<uint64_t> max_tokens;  // max_completion_tokens wins over max_tokens
  uint64_t prompt_tokens = 0;          // of prompt, messages or input
  std::string_view input;              // the raw value of `input`, a view into the body

  // For tests.
  std::optional<uint64_t> answer_bytes;  // mock_answer_bytes: length of the answer's text
  std::optional<uint64_t> stall_after;   // mock_stall_after: falls silent after so many tokens
};

Result<CompletionRequest> ParseCompletionRequest(std::string_view body);

// A token is a word of text or one number; of an array the sum, of an object what its `text` and
// `content` hold. `raw` is a valid JSON value.
uint64_t CountTokens(std::string_view raw);

}  // namespace fathom
