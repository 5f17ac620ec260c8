// Asks each ready worker, again and again: which engine are you, how much do you hold, how busy are
// you? The answers become the worker's report.
//
// Nothing waits for it: a worker that does not answer keeps the report it has, and one that cannot
// say is asked again only now and then.
//
// A worker that was away may be another process now. Nothing that was said before counts then; the
// report stays until the newcomer has been asked, and goes if it says nothing. One that is merely
// suspected (WorkerReport::Suspect) is asked for everything again, and what it does not say stays.
//
// Threads  Watch() and Forget() from any; the questions are asked on the control loop.
// Memory   At most `at_once` answers of 4 MiB.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/log.h"
#include "discovery/engine_interview.h"
#include "fleet/block_sizes.h"
#include "fleet/fleet.h"
#include "http/client_connection.h"

namespace fathom {

struct LoadWatchOptions {
  Duration interval = std::chrono::seconds(2);
  Duration timeout = std::chrono::seconds(5);  // of one question
  // For TensorRT-LLM, whose answer takes away what others may want to read.
  Duration draining_interval = std::chrono::seconds(10);
  Duration quiet_interval = std::chrono::seconds(30);  // for workers that cannot say
  Duration facts_interval = std::chrono::seconds(60);  // for what hardly changes
  uint32_t at_once = 16;                               // questions
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
  // How long to leave it alone afterwards.
  Task<Duration> Ask(Subject& subject);
  Task<void> AskFacts(Subject& subject);
  Task<EnginePage> AskLoad(Subject& subject);
  Task<EnginePage> AskMetrics(Subject& subject);
  Task<void> AskWhetherVllm(Subject& subject);
  EngineInterview Interview(const Subject& subject);
  bool Ready(Subject& subject);
  void Begin(Subject& subject);
  void PublishFacts(Subject& subject);
  void Publish(Subject& subject, EngineReport report);
  void SayPrefixCaching(Subject& subject, const EngineReport& report);
  uint64_t ContextLengthOf(WorkerId id);

  Loop& loop_;
  Resolver& resolver_;
  FleetReader fleet_;  // as all below: on the control loop only
  const LoadWatchOptions options_;
  Log& log_;
  BlockSizes* const sizes_;  // null: nobody wants to know how large blocks are
  uint32_t asking_ = 0;      // workers being asked now
  std::unordered_map<WorkerId, std::shared_ptr<Subject>> subjects_;
};

}  // namespace fathom
