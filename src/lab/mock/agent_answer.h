// What does a simulated engine write on /v1/messages and /v1/responses, byte for byte, in its own
// dialect?
//
// The text is the same as on other routes: one block, or one message, of text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/json.h"
#include "lab/mock/completion_answer.h"
#include "lab/mock/engine_words.h"
#include "lab/mock/mock_options.h"

namespace fathom {

// What is told at the end of an answer.
struct AgentUsageNumbers {
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;
  uint64_t output_tokens = 0;
};

class AgentAnswer {
 public:
  AgentAnswer(const AnswerIdentity& identity, MockRoute route, const MockOptions& options)
      : identity_(identity), route_(route), options_(options) {}

  std::string Whole(std::string_view text, std::string_view finish_reason,
                    const AgentUsageNumbers& usage) const;

  // The events of a stream, in order, each framed as one chunk of the body.
  std::string Begin(uint64_t prompt_tokens);
  std::string Piece(std::string_view text);
  std::string End(std::string_view text, std::string_view finish_reason,
                  const AgentUsageNumbers& usage);

 private:
  bool messages() const { return route_ == MockRoute::kMessages; }
  void AddMessageUsage(JsonWriter& w, const AgentUsageNumbers& usage, bool with_input) const;
  void AddResponseItem(JsonWriter& w, std::string_view text, std::string_view status) const;
  void AddResponse(JsonWriter& w, std::string_view text, std::string_view status,
                   std::string_view finish_reason, const AgentUsageNumbers* usage) const;
  std::string Event(std::string_view name, const JsonWriter& data) const;
  // An event of a response, begun.
  JsonWriter ResponseEvent(std::string_view name);

  const AnswerIdentity& identity_;
  const MockRoute route_;
  const MockOptions& options_;
  uint64_t number_ = 0;  // of the next event of a response
};

}  // namespace fathom
