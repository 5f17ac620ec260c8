#include "router/discovery/capability.h"

#include <utility>

#include "engine/engine_pages.h"
#include "router/discovery/engine_interview.h"

namespace fathom {
namespace {

// Known values have priority: a page that is read again must not overwrite them.
void Learn(EngineReport& known, const EnginePage& page) {
  if (!page.report) return;
  const bool same = known.engine == page.report->engine;
  if (same || known.engine == EngineKind::kUnknown) {
    known = Joined(std::move(known), *page.report);
  }
}

bool KnowsBlocks(const EngineReport& known) { return known.block_size > 0; }

// Reads both pages on which TensorRT-LLM may report its block size.
Task<void> AskTrtllmPages(EngineInterview& interview, EngineReport& known) {
  auto asking_metrics = interview.Metrics();
  const EnginePage metrics = co_await asking_metrics;
  Learn(known, metrics);
  if (KnowsBlocks(known)) co_return;
  auto asking_prometheus = interview.TrtllmPrometheus();
  const EnginePage prometheus = co_await asking_prometheus;
  Learn(known, prometheus);
}

// Its /metrics page has been read already.
Task<void> AskTrtllm(EngineInterview& interview, EngineReport& known) {
  auto asking = interview.TrtllmPrometheus();
  const EnginePage prometheus = co_await asking;
  Learn(known, prometheus);
  if (KnowsBlocks(known)) co_return;
  auto forcing = interview.HealthGenerate();
  co_await forcing;
  auto asking_again = AskTrtllmPages(interview, known);
  co_await asking_again;
}

}  // namespace

Task<EngineReport> AskCapability(Loop& loop, Resolver& resolver, const Worker& worker,
                                 std::shared_ptr<const Endpoint> endpoint, TimePoint deadline) {
  Caller caller(loop, resolver, std::move(endpoint));
  EngineInterview interview(caller, worker, Duration::max(), deadline);
  EngineReport known;
  auto asking_info = interview.ServerInfo();
  const EnginePage info = co_await asking_info;
  Learn(known, info);
  if (info.gone || KnowsBlocks(known)) co_return known;
  auto asking_metrics = interview.Metrics();
  const EnginePage metrics = co_await asking_metrics;
  Learn(known, metrics);
  if (known.engine == EngineKind::kUnknown) {
    auto asking_sources = interview.VllmEventSources();
    const EnginePage sources = co_await asking_sources;
    Learn(known, sources);
  }
  if (known.engine == EngineKind::kTrtllm && !KnowsBlocks(known)) {
    auto asking_trtllm = AskTrtllm(interview, known);
    co_await asking_trtllm;
  }
  co_return known;
}

}  // namespace fathom
