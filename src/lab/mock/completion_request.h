// What does this request ask a mock engine for?
//
// Memory  The body is scanned in place, however long its prompt is.
// Errors  kCaller, one line for the client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/mock/body_form.h"
#include "text/chat/chat_request.h"

namespace fathom {

// The members of all the OpenAI bodies that the mock understands.
struct CompletionRequest {
  static constexpr uint64_t kMaxTokens = 1'000'000;
  static constexpr uint64_t kMaxChoices = 128;

  std::string model;  // empty if the body names none
  bool stream = false;
  bool include_usage = false;          // stream_options.include_usage
  std::optional<uint64_t> max_tokens;  // max_completion_tokens wins over max_tokens
  uint64_t prompt_tokens = 0;          // of prompt, messages or input, in words

  // Raw values, views into the body; empty if it has none.
  std::string_view prompt;
  std::string_view input_ids;         // of chats, in SGLang
  std::string_view prompt_token_ids;  // of chats, in TensorRT-LLM
  ChatFields chat;

  // What only a simulated engine heeds.
  uint64_t choices = 1;           // n
  std::vector<std::string> stop;  // none is empty
  std::string cache_salt;
  bool return_token_ids = false;
  bool prompt_logprobs = false;  // wanted, however many
  std::optional<uint64_t> rank;  // routed_dp_rank, which is SGLang's

  // For tests.
  std::optional<uint64_t> answer_bytes;  // mock_answer_bytes: length of the answer's text
  std::optional<uint64_t> stall_after;   // mock_stall_after: falls silent after so many tokens
};

Result<CompletionRequest> ParseCompletionRequest(std::string_view body);
// Of a body whose members have been read.
Result<CompletionRequest> ParseCompletionRequest(const BodyMembers& members);

// A token is a word of text or one number; of an array the sum, of an object what its `text` and
// `content` hold. `raw` is a valid JSON value.
uint64_t CountTokens(std::string_view raw);

}  // namespace fathom
