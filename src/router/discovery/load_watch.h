// Asks each ready worker periodically: which engine, how much cache, how much load? The answers
// become the worker's report.
//
// Nothing waits for it: a worker that does not answer keeps its last report, and one that cannot
// report is asked less often (quiet_interval).
//
// A worker that was away may be a new process. Its earlier answers are then discarded; the
// published report stays until the new process has been asked, and is dropped if that reports
// nothing. If a restart is only suspected (WorkerReport::Suspect), everything is asked again, and
// values that are not reported again stay.
//
// Threads  Watch() and Forget() from any thread; workers are asked on the control loop.
// Memory   At most `at_once` answers of 4 MiB.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/log.h"
#include "io/http/client_connection.h"
#include "router/discovery/engine_interview.h"
#include "router/fleet/block_sizes.h"
#include "router/fleet/fleet.h"

namespace fathom {

struct LoadWatchOptions {
  Duration interval = std::chrono::seconds(2);
  Duration timeout = std::chrono::seconds(5);  // of one question
  // For TensorRT-LLM: reading its statistics consumes them for other readers.
  Duration draining_interval = std::chrono::seconds(10);
  Duration quiet_interval = std::chrono::seconds(30);  // for workers that report no load
  Duration facts_interval = std::chrono::seconds(60);  // for values that rarely change
  uint32_t at_once = 16;                               // workers asked concurrently
};

class LoadWatch {
 public:
  LoadWatch(Loop& control, Resolver& resolver, const Fleet& fleet, const LoadWatchOptions& options,
            Log& log, BlockSizes* sizes = nullptr)
      : loop_(control),
        resolver_(resolver),
        fleet_(fleet),
        options_(options),
        log_(log),
        sizes_(sizes) {}

  void Watch(std::shared_ptr<Worker> worker, std::shared_ptr<const Endpoint> endpoint);
  void Forget(WorkerId id);

 private:
  struct Subject;

  Task<void> WatchForever(std::shared_ptr<Subject> subject);
  // Returns the pause until the next question.
  Task<Duration> Ask(Subject& subject);
  Task<void> AskFacts(Subject& subject);
  Task<EnginePage> AskLoad(Subject& subject);
  Task<EnginePage> AskMetrics(Subject& subject);
  Task<void> AskWhetherVllm(Subject& subject);
  EngineInterview Interview(Subject& subject);
  bool Ready(Subject& subject);
  void Begin(Subject& subject);
  void PublishFacts(Subject& subject);
  void Publish(Subject& subject, EngineReport report);
  uint64_t ContextLengthOf(WorkerId id);

  Loop& loop_;
  Resolver& resolver_;
  FleetReader fleet_;  // this and all below: on the control loop only
  const LoadWatchOptions options_;
  Log& log_;
  BlockSizes* const sizes_;  // null: block sizes are not needed
  uint32_t asking_ = 0;      // workers being asked now
  std::unordered_map<WorkerId, std::shared_ptr<Subject>> subjects_;
};

}  // namespace fathom
