// What does a simulated engine write on the routes that take its own form of requests, byte for
// byte?
//
//   SGLang   /generate: one object per sequence, with its numbers in "meta_info"; in a stream each
//            event has the whole text so far. Several sequences are a list, or have an index.
//   vLLM     /inference/v1/generate: choices with token ids and without text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/json.h"
#include "lab/mock/body_form.h"
#include "lab/mock/completion_request.h"
#include "lab/mock/mock_options.h"
#include "lab/mock/stream_voice.h"

namespace fathom {

// Moves what these routes name in their own way to where the rest of the mock finds it: the prompt,
// and the sampling parameters that a simulated engine heeds.
Result<void> TakeGenerateRequest(MockedEngine engine, const BodyMembers& members,
                                 CompletionRequest& out);

// The same answer of an engine that is not simulated, and finds nothing cached. `text` is escaped.
// A stream comes in one piece.
Answer GeneratePage(MockedEngine engine, const AnswerIdentity& identity,
                    const CompletionRequest& request, std::string_view text, uint64_t tokens,
                    std::string_view finish_reason);

class GenerateAnswer {
 public:
  using Prompts = SimulatedAnswer::Prompts;

  GenerateAnswer(const AnswerIdentity& identity, const MockOptions& options)
      : identity_(identity), options_(options) {}

  std::string Whole(std::span<const Choice> choices, Prompts prompts) const;
  // An event of a stream, framed as one chunk of the body.
  std::string Piece(size_t index, std::span<Choice> choices, Prompts prompts) const;
  // The usage of vLLM's stream, if it was asked for.
  std::string Usage(std::span<const Choice> choices, Prompts prompts) const;

  bool sglang() const { return options_.engine == MockedEngine::kSglang; }

 private:
  void AddSequence(JsonWriter& w, size_t index, const Choice& choice, Prompts prompts,
                   bool several) const;
  void AddMetaInfo(JsonWriter& w, const Choice& choice, Prompts prompts) const;
  void AddTokens(JsonWriter& w, size_t index, const Choice& choice, size_t from) const;
  void AddUsage(JsonWriter& w, std::span<const Choice> choices, Prompts prompts) const;

  const AnswerIdentity& identity_;
  const MockOptions& options_;
};

class GenerateVoice final : public StreamVoice {
 public:
  GenerateVoice(GenerateAnswer answer, bool usage) : answer_(answer), usage_(usage) {}

  std::string Before(size_t /*choice*/, Prompts /*prompts*/,
                     std::span<const Choice> /*choices*/) override {
    return {};
  }
  std::string Say(size_t choice, std::span<Choice> choices, std::string_view /*text*/,
                  bool /*last*/, Prompts prompts) override {
    return answer_.Piece(choice, choices, prompts);
  }
  std::string End(std::span<const Choice> choices, Prompts prompts) override {
    constexpr std::string_view kDone = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
    const bool asked = usage_ && !answer_.sglang();
    return (asked ? answer_.Usage(choices, prompts) : std::string()).append(kDone);
  }

 private:
  const GenerateAnswer answer_;
  const bool usage_;
};

}  // namespace fathom
