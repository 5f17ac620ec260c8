// Asks one worker for the pages on which its engine tells about itself, one after the other.
//
//   EngineInterview interview(loop, resolver, worker, endpoint, patience, end);
//   auto asking = interview.Metrics();
//   const EnginePage page = co_await asking;
//
// A page may take `patience`, and half of what is left until the end, so that one page that never
// comes leaves time for the others. Nothing is asked after the end.
//
// Threads  On the loop.
// Memory   One answer at a time, of at most 4 MiB. Everything it is given must outlive it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fleet/engine_report.h"
#include "fleet/worker.h"
#include "http/client_connection.h"

namespace fathom {

struct EnginePage {
  bool settled = false;                // asking again soon would bring nothing else
  bool found = false;                  // there is such a page
  bool gone = false;                   // nobody listens
  std::optional<EngineReport> report;  // nothing: it is not what the engines that we know say
};

class EngineInterview {
 public:
  EngineInterview(Loop& loop, Resolver& resolver, const Worker& worker, const Endpoint& endpoint,
                  Duration patience, TimePoint end = kNever)
      : loop_(loop),
        resolver_(resolver),
        worker_(worker),
        endpoint_(endpoint),
        patience_(patience),
        end_(end) {}

  // What hardly changes: vLLM (in development mode) and SGLang.
  Task<EnginePage> ServerInfo();
  // Cache and load of any engine. Takes away what TensorRT-LLM has to say.
  Task<EnginePage> Metrics();
  // Load of SGLang.
  Task<EnginePage> SglangLoads();
  // Cache of TensorRT-LLM.
  Task<EnginePage> TrtllmPrometheus();
  // That it is vLLM, where nothing else says so.
  Task<EnginePage> VllmEventSources();
  // A health check that makes the engine run one iteration.
  Task<EnginePage> HealthGenerate();

 private:
  using Reader = std::optional<EngineReport> (*)(std::string_view page);

  // The page, read by the reader unless that is null.
  Task<EnginePage> Get(std::string path, Reader reader);

  Loop& loop_;
  Resolver& resolver_;
  const Worker& worker_;
  const Endpoint& endpoint_;
  const Duration patience_;
  const TimePoint end_;
};

}  // namespace fathom
