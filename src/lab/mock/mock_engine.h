// A stand-in for an LLM engine: answers the OpenAI routes with text that names the speaker, either
// out of a simulated engine or at the pace it is told, with the faults it is told.
//
//   POST /v1/chat/completions, /v1/completions (streamed or not), /v1/responses, /v1/messages,
//   /v1/messages/count_tokens, /v1/embeddings;
//   POST to what other kinds of models have (/v1/score, /v1/rerank, /v1/classify, /v1/pooling,
//   /v1/audio..., /v1/images...) echoes the path, the body's length and its checksum.
//   GET  /health, /health_generate, /v1/models, /version, /mock/stats (MockCounts)
//   GET, POST /mock/faults (fault_page.h)
//   and the pages of the engine that it imitates (face.h)
//
// It refuses what the engine refuses, in its words (engine_words.h).
//
// Only completions of texts and chats are simulated; everything else is paced. Answers to POST
// /v1/* carry x-mock-request-id and x-mock-traceparent with what was received.
//
// Threads  One engine per loop; those of one server share their counts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/random.h"
#include "io/http/server_connection.h"
#include "io/net/loop.h"
#include "io/net/task.h"
#include "lab/mock/engine_ranks.h"
#include "lab/mock/face.h"
#include "lab/mock/mock_options.h"
#include "lab/mock/paced_service.h"
#include "lab/mock/presence.h"
#include "lab/mock/simulated_service.h"
#include "lab/mock/visit.h"

namespace fathom {

class MockEngine final : public HttpHandler {
 public:
  // Without ranks it is paced. They and the counts must outlive it.
  MockEngine(Loop& loop, const MockOptions& options, MockCounts& counts, EngineRanks* ranks);

  Task<void> Handle(ServerConnection& connection) override;
  Answer Refuse(const RequestProblem& problem) override;

  // Before the loop runs: another name, for who learns its port late.
  void Rename(const std::string& name);

  // Before the loop runs: who hears of the body of every POST /mock/faults that changed something.
  void SetFaultListener(std::function<void(std::string_view)> listener) {
    on_faults_ = std::move(listener);
  }
  // As if it had been posted here. On the loop.
  Result<void> AdoptFaults(std::string_view body);

  // Breaks off every request, as if its client had left.
  void BreakOff();
  // From now on: no token is sent, and no connection closed, in what is being answered.
  void Silence();
  // From now on: new requests get finish_reason "abort" and no tokens.
  void AbortNew() { options_.drain_abort = true; }
  // The same, and what is being answered ends now, with the tokens that it has.
  void AbortRunning();

 private:
  enum class Fate : uint8_t { kFine, kFail, kHang };

  Task<void> ServePage(ServerConnection& connection, std::string_view path);
  Task<void> ServeProbe(ServerConnection& connection);
  // False: the client left.
  Task<bool> Linger(ServerConnection& connection, Duration time);
  std::optional<Answer> CommonPage(const PageRequest& request) const;
  Answer ChangeFaults(std::string_view body);
  std::optional<Answer> FacePage(const PageRequest& request);
  std::optional<Answer> StoredResponse(const PageRequest& request) const;
  bool IsInference(std::string_view path) const;
  bool HasPostPage(std::string_view path) const;
  Answer NoSuchPage(const PageRequest& request) const;
  Answer HealthPage() const;
  bool Authorized(const RequestHead& head) const;
  Fate Draw();

  Task<void> ServePost(ServerConnection& connection, std::string_view path);
  Task<Outcome> ReadAndAnswer(ServerConnection& connection, Presence& presence,
                              std::string_view path);
  Task<Outcome> AnswerModelCall(Visit& visit);
  Task<Outcome> Generate(Visit& visit);

  // Reads the members, and says what the engine has against the form of the request.
  std::optional<Answer> ReadForm(Visit& visit) const;
  // What the engine has against what the request asks for.
  std::optional<Answer> CheckRequest(Visit& visit);
  Answer Refused(const Visit& visit, const Error& error) const;
  Result<void> Prepare(Visit& visit);
  // A request to /v1/responses, with all that came before it; false: it goes on from one that is
  // not there.
  bool Recall(Visit& visit) const;
  // Of completions: counts them by their form, and tokenizes them where that matters.
  Result<void> ReadPrompts(Visit& visit);
  bool Simulates(const Visit& visit) const;
  bool Serves(MockRoute route, std::string_view model) const;
  std::string MakeId(std::string_view prefix, const RequestHead& head);
  void Count(Outcome outcome);

  Loop& loop_;
  MockOptions options_;
  MockCounts& counts_;
  EngineRanks* const ranks_;
  PacedService paced_;
  std::optional<SimulatedService> simulated_;
  const TimePoint ready_at_;
  Random dice_;
  std::function<void(std::string_view)> on_faults_;
  std::unordered_set<Presence*> present_;
};

}  // namespace fathom
