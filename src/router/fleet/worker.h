// One engine endpoint: its identity, its load from the routers, and its failures.
//
// Threads  The identity is immutable. Load, breaker and counters are atomics that any loop may use.
//          Health and models belong to the fleet's snapshots, not to the worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "metrics/counter.h"
#include "router/fleet/catch_up.h"
#include "router/fleet/circuit_breaker.h"
#include "router/fleet/rank.h"
#include "router/fleet/usage_habit.h"
#include "router/fleet/worker_report.h"

namespace fathom {

// What is known of a worker before the first connection.
struct WorkerSpec {
  std::string url;          // normalized; the id is derived from it
  std::string host_header;  // Host header of requests to it
  std::string base_path;    // prefix of their paths, often empty
  std::string api_key;      // sent as a bearer token, if not empty
  std::string api_key_env;  // name of the variable, for the admin pages
  std::string ca_file;
  std::optional<std::string> kv_events;
  std::optional<std::string> kv_events_replay;
  std::optional<std::string> kv_events_topic;

  friend bool operator==(const WorkerSpec&, const WorkerSpec&) = default;
};

struct BreakerOptions {
  uint32_t failures = 5;
  Duration open_for = std::chrono::seconds(5);
};

class Worker {
 public:
  // `pulse` is the fleet's; null outside of one.
  Worker(WorkerSpec spec, const BreakerOptions& breaker_options,
         const std::shared_ptr<FleetPulse>& pulse = nullptr)
      : ranks(pulse),
        breaker(breaker_options.failures, breaker_options.open_for, pulse),
        report(pulse),
        catch_up(pulse),
        spec_(std::move(spec)),
        id_(WorkerId::OfUrl(spec_.url)),
        id_text_(std::to_string(id_.value())) {}

  WorkerId id() const { return id_; }
  const std::string& id_text() const { return id_text_; }
  const WorkerSpec& spec() const { return spec_; }

  std::atomic<uint32_t> in_flight{0};            // requests of this router
  std::atomic<uint32_t> in_flight_elsewhere{0};  // of its other replicas, as they last said
  // Of all replicas, for choices.
  uint32_t in_flight_in_all() const {
    return in_flight.load(std::memory_order_relaxed) +
           in_flight_elsewhere.load(std::memory_order_relaxed);
  }
  RankTable ranks;
  CircuitBreaker breaker;
  WorkerReport report;  // what its engine reports
  UsageHabits usage;    // when its streams report usage
  CatchUp catch_up;     // whether the index has its blocks by now

  Counter requests;        // sent to it
  Counter failures;        // connection refused or broken, no answer in time, 5xx
  Counter aborted;         // answered 200, and ended the answer early
  Counter busy;            // answered 503
  Counter broken_streams;  // answers truncated after their first byte

  // Since when its listener refuses connections (nanoseconds of the steady clock); 0: it does not.
  // Written by the prober, read by loops that wait for silent answers.
  std::atomic<int64_t> gone_since{0};

 private:
  const WorkerSpec spec_;
  const WorkerId id_;
  const std::string id_text_;
};

}  // namespace fathom
