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

#include "codec/json.h"
#include "lab/mock/answer_text.h"
#include "lab/mock/completion_answer.h"
#include "lab/mock/kv_event.h"
#include "lab/mock/mock_options.h"

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

// What an answer tells, besides its text.
struct AnswerManner {
  MockedEngine engine;
  bool token_ids;
  bool cached_tokens;
};

class SimulatedAnswer {
 public:
  SimulatedAnswer(const AnswerIdentity& identity, const AnswerManner& manner)
      : identity_(identity), manner_(manner) {}

  using Prompts = std::span<const std::vector<TokenId>>;

  std::string Whole(std::span<const Choice> choices, Prompts prompts) const;

  // Events, each framed as one chunk of the body.
  std::string Role(size_t index, const std::vector<TokenId>& prompt) const;
  // The text that can be said now, and the tokens that have not been told.
  std::string Piece(size_t index, Choice& choice, std::string_view text,
                    const std::vector<TokenId>& prompt) const;
  // The last of these, with the usage in it.
  std::string LastPiece(size_t index, std::span<Choice> choices, std::string_view text,
                        Prompts prompts) const;
  std::string Usage(std::span<const Choice> choices, Prompts prompts) const;

 private:
  void AddPiece(JsonWriter& w, size_t index, Choice& choice, std::string_view text,
                const std::vector<TokenId>& prompt) const;
  void AddUsage(JsonWriter& w, std::span<const Choice> choices, Prompts prompts,
                bool streamed) const;

  const AnswerIdentity& identity_;
  const AnswerManner manner_;
};

}  // namespace fathom
