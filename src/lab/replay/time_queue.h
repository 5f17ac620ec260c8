// Whose turn is next? Numbers by the time at which something becomes due for them.
//
// Order    By time, then by number.
// Threads  One.
#pragma once

#include <cstddef>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace fathom {

class TimeQueue {
 public:
  // Never is not kept.
  void Push(TimePoint at, size_t number) {
    if (at != kNever) entries_.emplace(at, number);
  }
  TimePoint next() const { return entries_.empty() ? kNever : entries_.top().first; }
  // The next number that is due; nullopt: none is.
  std::optional<size_t> Pop(TimePoint now) {
    if (next() > now) return std::nullopt;
    const size_t number = entries_.top().second;
    entries_.pop();
    return number;
  }

 private:
  using Entry = std::pair<TimePoint, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
};

}  // namespace fathom
