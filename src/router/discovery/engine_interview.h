// Reads the pages with which an engine describes itself, one after the other.
//
//   EngineInterview interview(caller, worker, patience, end);
//   auto asking = interview.Metrics();
//   const EnginePage page = co_await asking;
//
// A page may take `patience`, and at most half of the time left until the end, so that one page
// that never arrives leaves time for the others. Nothing is asked after the end.
//
// Threads  On the loop.
// Memory   One answer at a time, of at most 4 MiB. All arguments must outlive it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/engine_report.h"
#include "io/http/fetch.h"
#include "router/fleet/worker.h"

namespace fathom {

struct EnginePage {
  bool settled = false;                // asking again soon would give the same result
  bool found = false;                  // the page exists
  bool gone = false;                   // connection refused
  std::optional<EngineReport> report;  // nullopt: not the format of a known engine
};

class EngineInterview {
 public:
  EngineInterview(Caller& caller, const Worker& worker, Duration patience, TimePoint end = kNever)
      : caller_(caller), worker_(worker), patience_(patience), end_(end) {}

  // Values that rarely change: vLLM (in development mode) and SGLang.
  Task<EnginePage> ServerInfo();
  // Cache and load of any engine. TensorRT-LLM's statistics are consumed by reading them.
  Task<EnginePage> Metrics();
  // SGLang's load.
  Task<EnginePage> SglangLoads();
  // TensorRT-LLM's cache.
  Task<EnginePage> TrtllmPrometheus();
  // Identifies vLLM if no other page does.
  Task<EnginePage> VllmEventSources();
  // A health check that makes the engine run one iteration.
  Task<EnginePage> HealthGenerate();

 private:
  using Reader = std::optional<EngineReport> (*)(std::string_view page);

  // The page, parsed by the reader unless that is null.
  Task<EnginePage> Get(std::string path, Reader reader);

  Caller& caller_;
  const Worker& worker_;
  const Duration patience_;
  const TimePoint end_;
};

}  // namespace fathom
