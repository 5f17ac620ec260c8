// How does an OpenAI endpoint serve this list of requests? Plays them over real sockets, each at
// its time, and says how the answers came.
//
// Open loop  A request starts when it is due, whatever became of the ones before, and all times
//            count from when it was due. Who wants a trace to pass faster divides its times.
// Memory     The prompts, each until its request is sent; answers are not kept. There are as many
//            connections as requests in flight.
// Threads    One loop; everything but the constructor belongs to it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/http/client_connection.h"
#include "io/http/connection_pool.h"
#include "io/net/loop.h"
#include "io/net/resolver.h"
#include "io/net/task.h"
#include "metrics/latency_histogram.h"

namespace fathom {

struct PlaybackRequest {
  Duration at{};                 // when it is due, from the start
  std::vector<uint32_t> prompt;  // token ids
  uint64_t max_tokens = 1;
};

struct PlaybackOptions {
  Endpoint endpoint;
  std::string model = "mock-model";
  std::string api_key;
  Duration timeout = std::chrono::minutes(5);  // per request
};

struct PlaybackReport {
  uint64_t started = 0;
  uint64_t completed = 0;                // whole streams with status 200
  std::map<int, uint64_t> errors;        // by status; 0: no answer, or a broken one
  std::string first_problem;             // of those with status 0
  uint64_t prompt_tokens = 0;            // of completed requests, as the engines counted them
  uint64_t cached_tokens = 0;            // of those, found in a cache, as the engines said
  uint64_t completion_tokens = 0;        // as the engines counted them
  uint64_t announced = 0;                // completed answers that had x-fathom-cached-tokens
  uint64_t announced_cached_tokens = 0;  // the sum of what it said
  LatencyHistogram first_byte;           // of the body, of completed requests
  LatencyHistogram total;                // until their last byte
  LatencyHistogram lag;                  // of all requests, between due and started
  double seconds = 0;                    // of the whole play

  uint64_t error_count() const;
};

class Playback {
 public:
  // The requests in the order in which they are due.
  Playback(Loop& loop, Resolver& resolver, PlaybackOptions options,
           std::vector<PlaybackRequest> requests);
  Playback(const Playback&) = delete;
  Playback& operator=(const Playback&) = delete;

  // Once. Ends when the last answer has.
  Task<void> Run();

  // What has been measured so far.
  const PlaybackReport& report() const { return report_; }

 private:
  struct Exchange;

  Task<void> Play(std::string request, TimePoint due);
  Task<Result<void>> Ask(Exchange& exchange);
  Task<Result<void>> Connect(Exchange& exchange);
  Task<Result<void>> Converse(Exchange& exchange);
  void Record(const Exchange& exchange);
  void RecordProblem(const Error& error);

  Loop& loop_;
  Resolver& resolver_;
  const PlaybackOptions options_;
  std::vector<PlaybackRequest> requests_;
  ConnectionPool pool_;
  PlaybackReport report_;
};

// The whole request: head and body.
std::string BuildPlaybackRequest(const PlaybackOptions& options, const PlaybackRequest& request);

}  // namespace fathom
