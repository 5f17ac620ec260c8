// What the demo looked like at one moment: plain values, so that pictures of it need nothing that
// runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace fathom {

struct WorkerMoment {
  std::string name;
  uint64_t running = 0;
  uint64_t waiting = 0;
  uint64_t served = 0;
  double cache_used = 0;  // by what is running, 0 to 1
  double reused = 0;      // of its prompt tokens, found in its cache, 0 to 1
};

// One router, its workers, and how it was for those who talked to it.
struct SideMoment {
  std::string router_mode;
  std::string url;  // of the router
  uint64_t turns = 0;
  uint64_t errors = 0;
  double turns_per_second = 0;
  double tokens_per_second = 0;
  Duration first_turn_p50{};  // time to first token of a conversation's first turn
  Duration first_turn_p90{};
  Duration follow_up_p50{};  // and of its later ones; 0: none yet
  Duration follow_up_p90{};
  Duration next_token_p50{};
  double reused = 0;          // of all prompt tokens, found in a cache, 0 to 1
  uint64_t known_blocks = 0;  // in the router's index, from the engines' events
  uint64_t event_batches = 0;
  std::vector<WorkerMoment> workers;
  std::vector<double> follow_up_history;  // seconds to first token, per second, oldest first
};

struct DemoMoment {
  Duration elapsed{};
  size_t people = 0;              // on each side
  std::vector<SideMoment> sides;  // the one to be shown, and what it is compared with
};

}  // namespace fathom
