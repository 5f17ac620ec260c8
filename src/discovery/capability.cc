#include "discovery/capability.h"

#include <utility>

#include "discovery/engine_interview.h"
#include "discovery/engine_pages.h"

namespace fathom {
namespace {

// What is known comes first: a page that is asked for again has nothing to take back.
void Learn(EngineReport& known, const EnginePage& page) {
  if (!page.report) return;
  const bool same = known.engine == page.report->engine;
  if (same || known.engine == EngineKind::kUnknown) {
    known = Joined(std::move(known), *page.report);
  }
}

bool KnowsBlocks(const EngineReport& known) { return known.block_size > 0; }

// Both places where TensorRT-LLM may say it.
Task<void> AskTrtllmPages(EngineInterview& interview, EngineReport& known) {
  auto asking_metrics = interview.Metrics();
  const EnginePage metrics = co_await asking_metrics;
  Learn(known, metrics);
  if (KnowsBlocks(known)) co_return;
  auto asking_prometheus = interview.TrtllmPrometheus();
  const EnginePage prometheus = co_await asking_prometheus;
  Learn(known, prometheus);
}

// Its /metrics have been asked for already.
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
                                 const Endpoint& endpoint, TimePoint deadline) {
  EngineInterview interview(loop, resolver, worker, endpoint, Duration::max(), deadline);
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
