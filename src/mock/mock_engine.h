// A stand-in for an LLM engine: answers the OpenAI routes with text that names the speaker, at the
// pace it is told, with the faults it is told.
//
//   POST /v1/chat/completions, /v1/completions (streamed or not), /v1/responses, /v1/embeddings;
//   POST /v1/<anything else> echoes the path, the body's length and its checksum.
//   GET  /health, /v1/models, /version, /mock/stats
//
// Answers to POST carry x-mock-request-id and x-mock-traceparent with what was received.
//
// Threads  One engine per loop; those of one server share their counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/random.h"
#include "http/server_connection.h"
#include "mock/completion_answer.h"
#include "mock/completion_request.h"
#include "mock/mock_options.h"
#include "mock/presence.h"
#include "net/loop.h"
#include "net/task.h"

namespace fathom {

class MockEngine final : public HttpHandler {
 public:
  MockEngine(Loop& loop, const MockOptions& options, MockCounts& counts);

  Task<void> Handle(ServerConnection& connection) override;
  Answer Refuse(const RequestProblem& problem) override;

  // Before the loop runs: another name, for who learns its port late.
  void Rename(const std::string& name);

  // Breaks off every request, as if its client had left.
  void BreakOff();

 private:
  enum class Outcome : uint8_t { kCompleted, kFailed, kCancelled };
  enum class Fate : uint8_t { kFine, kFail, kHang };

  // One request being answered.
  struct Visit {
    ServerConnection& connection;
    Presence& presence;
    std::string_view path;
    std::string_view body;
    CompletionRequest request;
    AnswerIdentity identity;
    uint64_t tokens = 0;
    std::string_view finish_reason;
    TimePoint started;
  };

  Answer Page(const RequestHead& head, std::string_view path) const;
  bool Authorized(const RequestHead& head) const;
  Fate Draw();

  Task<void> ServePost(ServerConnection& connection, std::string_view path);
  Task<Outcome> ReadAndAnswer(ServerConnection& connection, Presence& presence,
                              std::string_view path);
  Task<Outcome> AnswerModelCall(Visit& visit);
  Task<Outcome> AnswerWhole(Visit& visit);
  Task<Outcome> AnswerAtLength(Visit& visit);
  Task<Outcome> AnswerStream(Visit& visit);
  Task<Outcome> StreamTokens(Visit& visit, StreamFrames& frames);
  Task<Outcome> Finish(Visit& visit, Answer answer);

  Result<void> Prepare(Visit& visit);
  bool Serves(std::string_view model) const;
  std::string MakeId(std::string_view prefix, const RequestHead& head);
  TimePoint Due(const Visit& visit, uint64_t token) const;
  bool DiesWithin(const Visit& visit) const;
  static Outcome Die(Visit& visit);
  void AppendHead(std::string& out, const Visit& visit, std::string_view content_type) const;
  void Count(Outcome outcome);

  Loop& loop_;
  MockOptions options_;
  MockCounts& counts_;
  Speaker speaker_;
  Random dice_;
  std::unordered_set<Presence*> present_;
};

}  // namespace fathom
