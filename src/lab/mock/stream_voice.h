// How is a streamed answer written, in the API that the client uses?
//
// Each call returns events, framed as chunks of the body; nothing may be written before the first.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/mock/agent_answer.h"
#include "lab/mock/simulated_answer.h"

namespace fathom {

class StreamVoice {
 public:
  using Prompts = SimulatedAnswer::Prompts;

  virtual ~StreamVoice() = default;
  // Before the first token of a choice.
  virtual std::string Before(size_t choice, Prompts prompts, std::span<const Choice> choices) = 0;
  // What a token allows to be said; `last`: no choice is running any more.
  virtual std::string Say(size_t choice, std::span<Choice> choices, std::string_view text,
                          bool last, Prompts prompts) = 0;
  // And the end of the body.
  virtual std::string End(std::span<const Choice> choices, Prompts prompts) = 0;
};

// /v1/completions and /v1/chat/completions.
class CompletionVoice final : public StreamVoice {
 public:
  struct Habits {
    bool chat = false;
    bool usage = false;
    bool usage_with_choices = false;  // in the last event that has some
  };

  CompletionVoice(const SimulatedAnswer& answer, const Habits& habits)
      : answer_(answer), habits_(habits) {}

  std::string Before(size_t choice, Prompts prompts, std::span<const Choice> choices) override {
    return habits_.chat ? answer_.Role(choice, prompts[choices[choice].prompt]) : std::string();
  }
  std::string Say(size_t choice, std::span<Choice> choices, std::string_view text, bool last,
                  Prompts prompts) override {
    if (last && habits_.usage && habits_.usage_with_choices) {
      return answer_.LastPiece(choice, choices, text, prompts);
    }
    if (text.empty() && choices[choice].finish_reason.empty()) return {};
    return answer_.Piece(choice, choices[choice], text, prompts[choices[choice].prompt]);
  }
  std::string End(std::span<const Choice> choices, Prompts prompts) override {
    constexpr std::string_view kDone = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
    const bool apart = habits_.usage && !habits_.usage_with_choices;
    return (apart ? answer_.Usage(choices, prompts) : std::string()).append(kDone);
  }

 private:
  const SimulatedAnswer answer_;
  const Habits habits_;
};

// The numbers of an answer with one choice.
inline AgentUsageNumbers UsageOf(const Choice& choice, SimulatedAnswer::Prompts prompts) {
  return {.prompt_tokens = prompts[choice.prompt].size(),
          .cached_tokens = choice.cached_tokens,
          .output_tokens = choice.tokens.size()};
}

// /v1/messages and /v1/responses.
class AgentVoice final : public StreamVoice {
 public:
  explicit AgentVoice(AgentAnswer answer) : answer_(answer) {}

  std::string Before(size_t choice, Prompts prompts, std::span<const Choice> choices) override {
    return answer_.Begin(prompts[choices[choice].prompt].size());
  }
  std::string Say(size_t /*choice*/, std::span<Choice> /*choices*/, std::string_view text,
                  bool /*last*/, Prompts /*prompts*/) override {
    return text.empty() ? std::string() : answer_.Piece(text);
  }
  std::string End(std::span<const Choice> choices, Prompts prompts) override {
    const Choice& choice = choices.front();
    return answer_.End(choice.text.said(), choice.finish_reason, UsageOf(choice, prompts));
  }

 private:
  AgentAnswer answer_;
};

}  // namespace fathom
