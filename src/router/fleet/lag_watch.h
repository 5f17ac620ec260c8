// Do this rank's events arrive too late to be useful?
//
// Two measures. First: the time from an answer's first byte to the event with the request's blocks;
// it needs only the router's clock. Second: the engine's own timestamps; they show a growing
// backlog, and the lag itself if the two clocks agree. One late event proves nothing: the lag must
// persist.
//
// Threads  One.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "router/fleet/trust_evidence.h"

namespace fathom {

class LagWatch {
 public:
  // Consecutive looks, counting only those with a measurement.
  static constexpr uint32_t kLooks = 8;

  void AfterFirstByte(Duration lag) { Take(lag, true); }
  // `offset`: the router's wall clock minus the batch's timestamp. Returns the part that is lag.
  Duration ByTimestamp(Duration offset, TimePoint now);
  // The next timestamps come from another process.
  void Reset() {
    smallest_.reset();
    smallest_before_.reset();
  }

  // Call it periodically. All measurements since the last look count as one.
  std::optional<LateEvents> Look(Duration limit);

 private:
  void Take(Duration lag, bool after_first_byte) {
    if (measured_ && lag <= latest_.lag) return;
    measured_ = true;
    latest_ = {.lag = lag, .after_first_byte = after_first_byte};
  }

  // The smallest offset of the previous and of the current window: clocks drift, and get set.
  static constexpr Duration kWindow = std::chrono::minutes(5);
  std::optional<Duration> smallest_;
  std::optional<Duration> smallest_before_;
  TimePoint window_{};
  bool measured_ = false;  // since the last look
  LateEvents latest_;      // the worst since the last look
  LateEvents worst_;       // the evidence for `late_`
  uint32_t in_a_row_ = 0;  // looks that contradict `late_`
  bool late_ = false;
};

}  // namespace fathom
