// Answers requests out of a simulated engine: they share its batches and its cache, and take as
// long as it says.
//
// The text begins with "<name>/<rank>: ", so that a test can tell who spoke.
//
// Threads  One loop.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "lab/mock/engine_ranks.h"
#include "lab/mock/mock_options.h"
#include "lab/mock/mock_tokenizer.h"
#include "lab/mock/simulated_answer.h"
#include "lab/mock/stream_voice.h"
#include "lab/mock/visit.h"

namespace fathom {

class SimulatedService {
 public:
  // Both must outlive it.
  SimulatedService(EngineRanks& ranks, const MockOptions& options)
      : ranks_(ranks), options_(options), tokenizer_(options) {}

  // Answers to texts, chats and the requests of agents, whose prompts have been read.
  Task<Outcome> Serve(Visit& visit);
  // Makes the engine generate one token, as a deep health check does. False: the client left.
  Task<bool> Probe(Presence& presence);

 private:
  // One request inside the engine.
  struct Call {
    Visit& visit;
    std::vector<std::vector<TokenId>> prompts;
    size_t rank = 0;
    std::vector<Choice> choices;
    size_t running = 0;   // choices
    uint64_t tokens = 0;  // of all choices, so far
  };

  std::expected<Call, Answer> Admit(Visit& visit) const;
  std::expected<size_t, Answer> RankFor(const Visit& visit) const;
  std::expected<void, Answer> CheckLengths(const Call& call) const;
  std::expected<void, Answer> CheckVllmLength(const Call& call, uint64_t input) const;
  std::expected<void, Answer> CheckSglangLength(const Call& call, uint64_t input) const;
  std::unexpected<Answer> Refused(const Visit& visit, std::string message,
                                  std::string_view param = {}) const;
  std::expected<void, Answer> Submit(Call& call, Ticket& ticket) const;
  Result<EngineRequest> RequestFor(const Call& call, const Choice& choice, size_t copy) const;

  Task<Outcome> AnswerWhole(Call& call, Ticket& ticket);
  Task<Outcome> AnswerStream(Call& call, Ticket& ticket);
  Task<Outcome> StreamTokens(Call& call, Ticket& ticket, StreamVoice& voice);

  // The text that the token allows to be said.
  std::string_view Hear(Call& call, Ticket& ticket, const Ticket::Token& token) const;
  // Ends the choices that still run, and returns which.
  static std::vector<size_t> Abort(Call& call, Ticket& ticket);
  Task<Outcome> AbortStream(Call& call, Ticket& ticket, StreamVoice& voice);
  bool DiesNow(const Call& call) const;
  static bool StallsNow(const Call& call);
  SimulatedAnswer AnswerFor(const Call& call) const;
  AgentAnswer AgentAnswerFor(const Call& call) const;
  std::string WholeBody(const Call& call) const;
  // Keeps a response for those who go on from it.
  void Remember(const Call& call) const;
  std::unique_ptr<StreamVoice> VoiceFor(const Call& call) const;
  bool SendsUsage(const Call& call) const;

  EngineRanks& ranks_;
  const MockOptions& options_;
  const MockTokenizer tokenizer_;
};

}  // namespace fathom
