// May this line be logged again?
//
// The first few lines of a kind are logged, then one per pause, with the number of those in
// between.
//
// Threads  RepeatLimit: one. RepeatLimits: any.
// Memory   RepeatLimits holds at most kMostKeys; further ones share one limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/clock.h"

namespace fathom {

struct RepeatRule {
  uint32_t freely = 1;
  Duration pause = std::chrono::minutes(1);
};

// Lines of one kind about one subject.
class RepeatLimit {
 public:
  // The number of lines that were suppressed since the last one; nullopt: suppress this one, too.
  std::optional<uint64_t> Next(TimePoint now, const RepeatRule& rule = {});
  // The number of suppressed lines, once no line of the kind has come for a pause; then they count
  // as logged.
  std::optional<uint64_t> Rest(TimePoint now, const RepeatRule& rule = {});

  uint64_t suppressed() const { return suppressed_; }
  bool Paused(TimePoint now, const RepeatRule& rule = {}) const {
    return logged_ >= rule.freely && now - last_ < rule.pause;
  }

 private:
  uint32_t logged_ = 0;  // at most RepeatRule::freely
  TimePoint last_{};
  uint64_t suppressed_ = 0;
};

// Lines of one kind about many subjects.
class RepeatLimits {
 public:
  static constexpr size_t kMostKeys = 1024;

  explicit RepeatLimits(const RepeatRule& rule = {}) : rule_(rule) {}

  std::optional<uint64_t> Next(uint64_t key, TimePoint now);

 private:
  const RepeatRule rule_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, RepeatLimit> limits_;  // guarded by mutex_
  RepeatLimit others_;                                // guarded by mutex_
};

}  // namespace fathom
