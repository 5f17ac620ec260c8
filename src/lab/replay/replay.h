// How would this hour of traffic have gone with that way of routing?
//
// Plays a trace against simulated engines in virtual time: every request is decided at its arrival
// by the code that serves real ones; what the engines do, and when the router hears of it, follows.
// A request that finds no room waits in the router, first come first served. One whose engine goes
// before the first token goes to another.
//
// With several replicas of the router a balancer that knows nothing deals the requests out to them
// at random; each knows what it has placed itself, and what the others tell it.
//
// Determinism  The same trace, options and seed give the same history. Only the times that it takes
//              to decide are those of this machine.
// Memory       A prompt lives from its dispatch to its end. Every request keeps its first-token
//              time.
// Threads      One per replay.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lab/replay/trace.h"
#include "lab/replay/virtual_exchange.h"
#include "lab/replay/virtual_router.h"

namespace fathom {

// An engine goes, with all that it was doing, and comes back with an empty cache.
struct Incident {
  enum class Kind : uint8_t {
    kRestart,  // another process of the same worker
    kReplace,  // another worker
  };
  Duration at{};
  size_t engine = 0;
  Kind kind = Kind::kRestart;
  Duration away{};
};

struct ReplayOptions {
  uint32_t workers = 8;
  EngineOptions engine;
  double arrivals = 1;  // times faster than the trace
  VirtualRouterOptions router;
  uint32_t replicas = 1;                           // of the router
  std::optional<VirtualExchangeOptions> exchange;  // between them; nothing: they tell nothing
  std::vector<Incident> incidents;  // in order of time; one at a time for each engine
};

struct ReplayReport {
  uint64_t requests = 0;  // that got an answer
  uint64_t refused = 0;   // larger than a cache
  uint64_t broken = 0;    // ended with their engine, after their first token
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;  // of these, found by the engines
  double missed_tokens = 0;    // expected by the decisions, and not found
  uint64_t generated_tokens = 0;
  uint64_t preemptions = 0;
  std::vector<uint64_t> prefilled;          // tokens, by engine
  std::vector<size_t> placed;               // engine of each request, by its place in the trace
  std::vector<size_t> order;                // requests in the order of their dispatch
  std::vector<Duration> first_token;        // from arrival, sorted
  std::vector<Duration> between_tokens;     // the mean of each request, sorted
  std::vector<Duration> waits;              // in the router, of those that waited, sorted
  std::vector<Duration> decisions;          // what each took to make, sorted
  std::vector<VirtualTrust::Change> trust;  // of the first replica in each engine, as it changed
  Duration lasted{};                        // from the first arrival to the last token
  VirtualExchange::Traffic exchanged;       // between replicas
  // Nothing is left in the books; with an exchange, within kSettles after the last token, and also
  // of what replicas believe of each other.
  bool books_empty = false;
  static constexpr Duration kSettles = std::chrono::seconds(10);

  double reuse() const;
  // The busiest engine beside the mean, by tokens that it prefilled.
  double imbalance() const;
};

ReplayReport RunReplay(const std::vector<TraceRequest>& trace, const ReplayOptions& options,
                       const TimingProfile& profile);

// Exact; zero if there are none. `share` from 0 to 1.
Duration Quantile(const std::vector<Duration>& sorted, double share);
Duration Mean(const std::vector<Duration>& samples);

// The reuse of one cache without end that all engines share, in order of arrival.
double IdealReuse(const std::vector<TraceRequest>& trace, uint32_t block_size);

}  // namespace fathom
