// What the demo looked like at one moment: plain values, so that pictures of it need nothing that
// runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lab/demo/demo_fault.h"

namespace fathom {

// How far back "lately" goes.
constexpr Duration kLately = std::chrono::seconds(10);
// Follow-up turns that each side needs before the two are compared.
constexpr uint64_t kLeastSamples = 30;

struct WorkerMoment {
  std::string name;
  uint64_t running = 0;
  uint64_t waiting = 0;
  uint64_t served = 0;
  double cache_used = 0;      // by running requests, 0 to 1
  bool asked_lately = false;  // it was sent prompts lately
  double reused = 0;          // of their tokens, found in its cache, 0 to 1
  uint64_t known_blocks = 0;  // in the router's index
  std::string trust;          // of the router in its events; empty: the router does not use them
  std::string cause;          // why it is doubted
};

struct LatencyMoment {
  uint64_t count = 0;
  Duration p50{};  // 0: none yet
  Duration p90{};
  Duration p99{};
};

// One router, its workers, and how it was for those who talked to it.
struct SideMoment {
  std::string router_mode;
  std::string url;  // of the router
  uint64_t turns = 0;
  uint64_t errors = 0;
  double turns_per_second = 0;
  double tokens_per_second = 0;
  LatencyMoment first_turn;  // time to first token of a conversation's first turn
  LatencyMoment follow_up;   // and of its later ones
  Duration next_token_p50{};
  double reused = 0;               // of all prompt tokens, found in a cache, 0 to 1
  double reused_lately = 0;        // of those of the last kLately
  uint64_t recomputed = 0;         // prompt tokens that a worker of this side had computed before
  uint64_t recomputed_lately = 0;  // in the last kLately
  uint64_t known_blocks = 0;       // in the router's index, from the engines' events
  uint64_t event_batches = 0;
  std::vector<WorkerMoment> workers;
  // Per second, oldest first.
  std::vector<double> follow_up_history;  // seconds to first token
  std::vector<double> reuse_history;      // share of prompt tokens found in a cache
  bool uses_events = false;               // it routes by KV events, so that losing them matters
  FaultMoment fault;
};

struct DemoMoment {
  Duration elapsed{};
  size_t people = 0;              // on each side
  std::vector<SideMoment> sides;  // the one to be shown, and what it is compared with
};

}  // namespace fathom
