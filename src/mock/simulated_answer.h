// What does a simulated engine write, byte for byte, in its own dialect?
//
// A choice is one sequence: n of them for each prompt. Whole answers and the events of streamed
// ones are made of the same members.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mock/answer_text.h"
#include "mock/completion_answer.h"
#include "mock/kv_event.h"
#include "mock/mock_options.h"

namespace fathom {

struct Choice {
  explicit Choice(std::span<const std::string> stops) : text(stops) {}

  size_t prompt = 0;  // which one
  StopFinder text;
  std::vector<TokenId> tokens;
  size_t told = 0;                 // of the tokens, in a stream
  std::string_view finish_reason;  // empty: still running
  uint32_t cached_tokens = 0;
};

class SimulatedAnswer {
 public:
  SimulatedAnswer(const AnswerIdentity& identity, MockedEngine engine, bool with_ids)
      : identity_(identity), engine_(engine), with_ids_(with_ids) {}

  using Prompts = std::span<const std::vector<TokenId>>;

  std::string Whole(std::span<const Choice> choices, Prompts prompts) const;

  // Events, each framed as one chunk of the body.
  std::string Role(size_t index, const std::vector<TokenId>& prompt) const;
  // The text that can be said now, and the tokens that have not been told.
  std::string Piece(size_t index, Choice& choice, std::string_view text,
                    const std::vector<TokenId>& prompt) const;
  std::string Usage(std::span<const Choice> choices, Prompts prompts) const;

 private:
  const AnswerIdentity& identity_;
  const MockedEngine engine_;
  const bool with_ids_;
};

}  // namespace fathom
