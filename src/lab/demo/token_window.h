// How many prompt tokens were sent, found and computed again lately? The difference between two
// readings of counters that only grow.
//
// Memory   One reading per second of kLately.
// Threads  One.
#pragma once

#include <cstdint>
#include <deque>

#include "base/clock.h"
#include "lab/demo/demo_moment.h"

namespace fathom {

struct TokenCounts {
  uint64_t prompt = 0;
  uint64_t cached = 0;      // of those, found in a cache
  uint64_t recomputed = 0;  // and computed though computed before

  double reused() const;
  TokenCounts operator-(const TokenCounts& earlier) const;
  TokenCounts& operator+=(const TokenCounts& other);
};

class TokenWindow {
 public:
  // Of the last kLately, or of all the time if there was less.
  TokenCounts Lately(const TokenCounts& now) const;
  // Once per second.
  void Remember(const TokenCounts& now, Duration elapsed);

 private:
  struct Reading {
    Duration at;
    TokenCounts counts;
  };
  std::deque<Reading> readings_;  // the first one is the oldest that still counts
};

}  // namespace fathom
