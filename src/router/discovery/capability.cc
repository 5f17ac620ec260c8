#include "router/discovery/capability.h"

#include <utility>

#include "engine/engine_pages.h"
#include "router/discovery/engine_interview.h"

namespace fathom {
namespace {

// Known values have priority: a page that is read again must not overwrite them.
void Learn(EngineReport& known, const EngineReport& more) {
  const bool same = known.engine == more.engine;
  if (same || known.engine == EngineKind::kUnknown) known = Joined(std::move(known), more);
}

void Learn(EngineReport& known, const EnginePage& page) {
  if (page.report) Learn(known, *page.report);
}

bool KnowsBlocks(const EngineReport& known) { return known.block_size > 0; }

// A connection of its own for each page, because an engine may take long over each of them, and
// the delays of pages that are asked for one after the other add up.
struct Questioner {
  Questioner(Loop& loop, Resolver& resolver, const Worker& worker,
             std::shared_ptr<const Endpoint> endpoint, TimePoint deadline)
      : caller(loop, resolver, std::move(endpoint)),
        interview(caller, worker, Duration::max(), deadline) {}

  Caller caller;
  EngineInterview interview;
};

struct Questioners {
  Questioner info;
  Questioner metrics;
  Questioner prometheus;
};

// Reads both pages on which TensorRT-LLM may report its block size, until one of them has.
Task<void> AskTrtllmPages(Questioners& ask, EngineReport& known) {
  auto asking_metrics = ask.metrics.interview.Metrics();
  auto asking_prometheus = ask.prometheus.interview.TrtllmPrometheus();
  const EnginePage metrics = co_await asking_metrics;
  Learn(known, metrics);
  if (KnowsBlocks(known)) ask.prometheus.caller.Cancel();
  const EnginePage prometheus = co_await asking_prometheus;
  Learn(known, prometheus);
}

// The pages on which engines report their block size. What /server_info has counts first, and is
// awaited in any case: with context parallelism the size on another page is a fraction.
Task<bool> AskAllPages(Questioners& ask, EngineReport& known) {
  auto asking_info = ask.info.interview.ServerInfo();
  EngineReport others;
  auto asking_others = AskTrtllmPages(ask, others);
  const EnginePage info = co_await asking_info;
  Learn(known, info);
  if (info.gone || KnowsBlocks(known)) {
    ask.metrics.caller.Cancel();
    ask.prometheus.caller.Cancel();
  }
  co_await asking_others;
  Learn(known, others);
  co_return !info.gone;
}

}  // namespace

Task<EngineReport> AskCapability(Loop& loop, Resolver& resolver, const Worker& worker,
                                 std::shared_ptr<const Endpoint> endpoint, TimePoint deadline) {
  Questioners ask{{loop, resolver, worker, endpoint, deadline},
                  {loop, resolver, worker, endpoint, deadline},
                  {loop, resolver, worker, endpoint, deadline}};
  EngineReport known;
  auto asking_all = AskAllPages(ask, known);
  const bool there = co_await asking_all;
  if (there && known.engine == EngineKind::kUnknown) {
    auto asking_sources = ask.info.interview.VllmEventSources();
    const EnginePage sources = co_await asking_sources;
    Learn(known, sources);
  }
  if (there && known.engine == EngineKind::kTrtllm && !KnowsBlocks(known)) {
    auto forcing = ask.info.interview.HealthGenerate();
    co_await forcing;
    auto asking_again = AskTrtllmPages(ask, known);
    co_await asking_again;
  }
  co_return known;
}

}  // namespace fathom
