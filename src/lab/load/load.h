// How does an OpenAI endpoint behave under this traffic? A client that sends requests over real
// sockets and times the answers.
//
// Closed loop   rate 0: `concurrency` requests are always in flight.
// Open loop     Requests start when they are due, whatever became of the ones before; those that
//               find `concurrency` in flight wait their turn. All times count from when a request
//               was due, so a stall is seen by everyone who would have met it.
// Precision     Arrivals are stamped once per turn of the loop; `lag` says how late requests were
//               sent.
// Threads       One loop; everything but the constructor belongs to it.
#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "io/http/client_connection.h"
#include "io/net/loop.h"
#include "io/net/resolver.h"
#include "io/net/task.h"
#include "lab/load/fine_alarm.h"
#include "metrics/latency_histogram.h"

namespace fathom {

struct LoadOptions {
  Endpoint endpoint;
  std::string path = "/v1/chat/completions";  // or another that takes a prompt or an input
  std::string model = "mock-model";
  std::string api_key;
  size_t concurrency = 10;
  uint64_t requests = 0;  // in all; 0: no limit
  Duration duration{};    // no request starts after it; 0: no limit
  double rate = 0;        // requests per second; 0: closed loop
  bool poisson = true;    // gaps between requests; otherwise all are equal
  Duration ramp{};        // closed loop: the first requests start spread over it
  Duration warmup{};      // of what was due before it is over, no times are recorded
  bool stream = true;
  bool keep_alive = true;
  size_t prompt_bytes = 256;
  uint64_t max_tokens = 32;
  Duration timeout = std::chrono::seconds(60);  // per request
  uint64_t seed = 1;
};

struct LoadReport {
  uint64_t started = 0;
  uint64_t completed = 0;           // whole answers with status 200
  std::map<int, uint64_t> errors;   // by status; 0: no answer, or a broken one
  std::string first_problem;        // of those with status 0
  uint64_t unsent = 0;              // were due, but the run was over before their turn
  uint64_t connections = 0;         // opened
  uint64_t bytes = 0;               // of bodies
  uint64_t chunks = 0;              // events of streamed answers, [DONE] included
  uint64_t tokens = 0;              // as `usage` in the answers says
  LatencyHistogram first_byte;      // of the body: the time to first token, when streaming
  LatencyHistogram between_chunks;  // between arrivals within an answer
  LatencyHistogram total;           // until the last byte
  LatencyHistogram lag;             // open loop: between due and started
  double seconds = 0;

  uint64_t error_count() const;
};

class LoadGenerator {
 public:
  LoadGenerator(Loop& loop, Resolver& resolver, const LoadOptions& options);
  LoadGenerator(const LoadGenerator&) = delete;
  LoadGenerator& operator=(const LoadGenerator&) = delete;

  // Once. Ends when the last request has.
  Task<void> Run();

  // No more requests are started; those in flight go on.
  void Stop();

  // What has been measured so far.
  const LoadReport& report();

 private:
  struct Turn;
  struct Exchange;

  Task<void> Visit(Duration pause);
  Task<void> Admit();
  Task<void> Ask(Exchange& exchange);
  Task<bool> Connect(Exchange& exchange);
  Task<Result<void>> Converse(Exchange& exchange);
  void TakePayload(Exchange& exchange, std::string_view payload);
  void RecordArrival(Exchange& exchange);
  void Record(Exchange& exchange);

  std::optional<TimePoint> TakeTurn();
  bool MayStartMore() const;
  bool Timed(const Exchange& exchange) const;
  void AdmitDue();
  void DropBacklog();
  Duration Gap();

  Loop& loop_;
  Resolver& resolver_;
  const LoadOptions options_;
  const std::string request_;  // the same for all
  Random random_;
  LoadReport report_;
  TimePoint begun_{};
  TimePoint end_ = kNever;
  TimePoint next_due_{};
  uint64_t admitted_ = 0;
  bool over_ = false;  // nothing more will be admitted
  bool finished_ = false;
  std::optional<FineAlarm> alarm_;  // while requests become due
  std::deque<TimePoint> backlog_;   // due, and waiting for somebody who is free
  std::vector<Turn*> free_;         // last in, first out, so that connections stay warm
};

// The whole request: head and body.
std::string BuildLoadRequest(const LoadOptions& options);

// The number after the last "completion_tokens": in what an answer ends with; 0 if there is none.
uint64_t CompletionTokens(std::string_view tail);

// Runs it on a loop of its own on this thread.
LoadReport RunLoad(const LoadOptions& options);

}  // namespace fathom
