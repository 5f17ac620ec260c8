// The bodies of a mock engine's answers that are made in one piece.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lab/mock/completion_answer.h"
#include "lab/mock/completion_request.h"
#include "lab/mock/engine_ranks.h"
#include "lab/mock/mock_options.h"

namespace fathom {

std::string ModelsPage(const MockOptions& options, int64_t created);
std::string VersionPage(MockedEngine engine);
// A paced engine has no ranks.
std::string StatsPage(const MockCounts& counts, const EngineRanks* ranks,
                      const PrefixLedger* ledger);

// One vector of eight numbers per input, which depend on that input's bytes alone.
std::string EmbeddingsPage(const AnswerIdentity& identity, const CompletionRequest& request);
std::string ResponsePage(const AnswerIdentity& identity, const CompletionRequest& request,
                         std::string_view escaped_text, uint64_t tokens,
                         std::string_view finish_reason);

// Anthropic's answer, whole or as the events of a stream. One that is aborted has no stop_reason.
std::string MessagePage(const AnswerIdentity& identity, const CompletionRequest& request,
                        std::string_view escaped_text, uint64_t tokens,
                        std::string_view finish_reason);
std::string MessageEvents(const AnswerIdentity& identity, const CompletionRequest& request,
                          std::string_view escaped_text, uint64_t tokens,
                          std::string_view finish_reason);

// Proof of what came in: the path, the body's length and its XXH3-64.
std::string EchoPage(std::string_view path, std::string_view body);

}  // namespace fathom
