// What does an engine tell about itself, besides answering requests? Each engine has routes and
// words of its own: its face.
//
// Capability pages describe a simulated engine; a paced one has nothing to tell and none of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/http/server_connection.h"
#include "lab/mock/engine_ranks.h"
#include "lab/mock/engine_words.h"
#include "lab/mock/mock_options.h"
#include "metrics/exposition.h"

namespace fathom {

struct PageRequest {
  std::string_view method;
  std::string_view path;
  std::string_view content_type = {};
  std::string_view body = {};

  bool Is(std::string_view m, std::string_view p) const { return method == m && path == p; }
};

// A page on which some engine tells about itself; only these are late when reports are.
bool IsReport(const PageRequest& request);

// The answer, or nothing if the engine has no such page.
//
// vLLM  GET /metrics, /kv_event_sources, /server_info, /load, /ping; POST /reset_prefix_cache,
//       /tokenize, /detokenize.
std::optional<Answer> VllmPage(const PageRequest& request, const MockOptions& options,
                               EngineRanks* ranks);
// SGLang  GET /metrics, /server_info, /get_server_info, /model_info, /get_model_info, /v1/loads;
//         GET and POST /flush_cache; POST /tokenize, /v1/tokenize, /detokenize.
std::optional<Answer> SglangPage(const PageRequest& request, const MockOptions& options,
                                 EngineRanks* ranks);
// TensorRT-LLM  GET /metrics (statistics of the iterations since it was last read, as JSON, where
//               they are kept),
//               /prometheus/metrics, /server_info; POST /kv_cache_events.
std::optional<Answer> TrtllmPage(const PageRequest& request, const MockOptions& options,
                                 EngineRanks* ranks);

// The method that a page of an engine is asked for with; empty: it has no such page.
std::string_view MethodOfPage(MockedEngine engine, std::string_view path);

// What the faces share.
//
// vLLM names the models that there are.
Refusal UnknownModel(const MockOptions& options, std::string_view model);
// What the pages say a rank's blocks have, in tokens; 0: nothing.
uint32_t ReportedBlockSize(const MockOptions& options, const EngineDriver& rank);
Answer TokenizePage(const PageRequest& request, const MockOptions& options);
Answer DetokenizePage(const PageRequest& request, std::string_view text_key,
                      const MockOptions& options);
Answer MetricsAnswer(const Exposition& exposition);
// Whether prefixes are cached, where the pages tell it. `always`: also of an engine that never did
// otherwise.
std::optional<bool> ReportedPrefixCaching(const MockOptions& options, bool always);
// What no engine tells: mock:*, in the same words for all of them.
void AddMockCounters(Exposition& out, const MockOptions& options, const EngineRanks& ranks);

}  // namespace fathom
