// One request for a model's answer, while it is being answered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/http/server_connection.h"
#include "io/net/task.h"
#include "lab/mock/body_form.h"
#include "lab/mock/completion_answer.h"
#include "lab/mock/completion_request.h"
#include "lab/mock/engine_words.h"
#include "lab/mock/presence.h"
#include "text/tokens/token.h"

namespace fathom {

// How it ends. Every request ends as exactly one of these.
enum class Outcome : uint8_t { kCompleted, kFailed, kCancelled };

struct Visit {
  ServerConnection& connection;
  Presence& presence;
  std::string_view path;
  MockRoute route = MockRoute::kOther;
  std::string_view body = {};
  BodyMembers members = {};
  std::string conversation = {};  // the input of a response, with what it goes on from
  CompletionRequest request = {};
  std::vector<std::vector<TokenId>> prompts = {};  // where somebody wants to know them
  AnswerIdentity identity = {};
  uint64_t tokens = 0;  // that the answer will have, unless something stops it
  std::string_view finish_reason = {};
  bool aborted = false;  // no tokens, at once
  TimePoint started = {};
};

Answer JsonAnswer(int status, std::string body);
// In vLLM's shape.
Answer ErrorAnswer(int status, std::string_view type, std::string_view message,
                   std::string_view param = {});

// The head of an answer that is written piece by piece, without the empty line at its end. Like
// every answer to a visit it tells what came in: x-mock-request-id and x-mock-traceparent.
void AppendHead(std::string& out, const Visit& visit, std::string_view content_type);

// A whole answer.
Task<Outcome> Finish(Visit& visit, Answer answer);

// Breaks the connection as a dying process does.
Outcome Die(Visit& visit);

// Says nothing more, until the client leaves.
Task<Outcome> FallSilent(Visit& visit);

}  // namespace fathom
