// One engine endpoint: who it is, how busy it is with our requests, how it has behaved.
//
// Threads  Identity is immutable. Load, breaker and counters are atomics that any loop may touch.
//          Health and models belong to the fleet's snapshots, not to the worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "fleet/circuit_breaker.h"
#include "fleet/engine_report.h"
#include "fleet/rank.h"
#include "fleet/usage_habit.h"
#include "metrics/counter.h"

namespace fathom {

// What is known of a worker before anybody has talked to it.
struct WorkerSpec {
  std::string url;          // in its one spelling; the id comes from it
  std::string host_header;  // what requests to it say in Host
  std::string base_path;    // what their paths are prefixed with, often nothing
  std::string api_key;      // sent as a bearer token, if not empty
  std::string api_key_env;  // where it came from, for the admin pages
  std::string ca_file;
  std::optional<std::string> kv_events;
  std::optional<std::string> kv_events_replay;
  std::optional<std::string> kv_events_topic;
};

struct BreakerOptions {
  uint32_t failures = 5;
  Duration open_for = std::chrono::seconds(5);
};

class Worker {
 public:
  Worker(WorkerSpec spec, const BreakerOptions& breaker_options)
      : breaker(breaker_options.failures, breaker_options.open_for),
        spec_(std::move(spec)),
        id_(WorkerId::OfUrl(spec_.url)),
        id_text_(std::to_string(id_.value())) {}

  WorkerId id() const { return id_; }
  const std::string& id_text() const { return id_text_; }
  const WorkerSpec& spec() const { return spec_; }

  std::atomic<uint32_t> in_flight{0};
  RankTable ranks;
  CircuitBreaker breaker;
  WorkerReport report;  // what its engine says of itself
  UsageHabits usage;    // and what it says of its streams

  Counter requests;        // sent to it
  Counter failures;        // connection refused or broken, no answer in time, 5xx
  Counter aborted;         // answered 200 with nothing in it
  Counter busy;            // answered 503
  Counter broken_streams;  // answers that broke off after their first byte

  // Since when its listener refuses connections (nanoseconds of the steady clock), 0 while it does
  // not. Written by the prober, read by loops that wait for silent answers.
  std::atomic<int64_t> gone_since{0};

 private:
  const WorkerSpec spec_;
  const WorkerId id_;
  const std::string id_text_;
};

}  // namespace fathom
