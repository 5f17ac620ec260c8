// What does each rank's stream of KV events say, and how well does it flow?
//
// Whoever follows a stream opens a FeedStatus for it and keeps it up to date; the admin pages, the
// metrics and later the doctor read them.
//
// Threads  Board: any. A status is written by one thread; its numbers are plain counts that order
//          nothing else.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "metrics/histogram.h"

namespace fathom {

// A number with one writer.
class FeedNumber {
 public:
  void Set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  void Add(uint64_t value) { Set(Get() + value); }
  uint64_t Get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// The numbers of a feed, in the order in which they are shown. What each means stands in
// metrics/feed_families.h, at kv_router_feed_ and its name.
//   X(name, how the metric's name ends: "_total" for what only grows)
#define FATHOM_FEED_NUMBERS(X)    \
  X(batches, "_total")            \
  X(stored_blocks, "_total")      \
  X(removed_blocks, "_total")     \
  X(clears, "_total")             \
  X(gaps, "_total")               \
  X(repaired_batches, "_total")   \
  X(lost_batches, "_total")       \
  X(duplicate_batches, "_total")  \
  X(malformed_batches, "_total")  \
  X(malformed_events, "_total")   \
  X(ignored_events, "_total")     \
  X(stray_messages, "_total")     \
  X(other_block_size, "_total")   \
  X(mismatched_events, "_total")  \
  X(restarts, "_total")           \
  X(reconnects, "_total")         \
  X(resets, "_total")             \
  X(replays, "_total")            \
  X(replay_failures, "_total")    \
  X(copies, "_total")             \
  X(unknown_removed, "_total")    \
  X(parked_blocks, "_total")      \
  X(adopted_blocks, "_total")     \
  X(lost_orphans, "_total")       \
  X(conflicts, "_total")          \
  X(evicted_blocks, "_total")     \
  X(refused_blocks, "_total")     \
  X(unsupported_blocks, "_total") \
  X(blocks, "")                   \
  X(ghosts, "")                   \
  X(orphans, "")                  \
  X(cache_parts, "")              \
  X(unsupported_groups, "")       \
  X(block_size, "")

// How far one gets with the port that events should come from.
enum class FeedReach : uint8_t {
  kUnknown,
  kOpen,        // somebody listens
  kRefused,     // nobody does
  kTimeout,     // no answer at all: a firewall, or another host
  kUnresolved,  // the host has no address
};
std::string_view Name(FeedReach reach);

struct FeedStatus {
  FeedStatus(WorkerId w, uint32_t r, std::string s) : worker(w), dp_rank(r), source(std::move(s)) {}

  const WorkerId worker;
  std::atomic<uint32_t> dp_rank;
  const std::string source;  // where the events come from

#define FATHOM_FEED_FIELD(name, suffix) FeedNumber name;
  FATHOM_FEED_NUMBERS(FATHOM_FEED_FIELD)
#undef FATHOM_FEED_FIELD

  std::atomic<bool> connected{false};
  std::atomic<FeedReach> reach{FeedReach::kUnknown};
  std::atomic<int64_t> last_sequence{-1};  // of the batch that was applied last
  std::atomic<int64_t> last_event{0};      // when, in nanoseconds of the steady clock; 0: never
};

// Why a worker has no stream that could be followed.
enum class NoFeed : uint8_t {
  kNone,
  kPublisherOff,  // the engine says that it publishes nothing
  kDialsOut,      // the engine connects to an address, and nobody binds it
  kOther,
};

class FeedBoard {
 public:
  struct Problem {
    NoFeed kind = NoFeed::kNone;
    std::string text;  // for operators, with the fix
  };
  // How late events are: by the engines' clocks, and from the first byte of an answer.
  Histogram lag_by_timestamp;
  Histogram lag_after_first_byte;

  FeedBoard();

  // It is on the board as long as somebody keeps it.
  std::shared_ptr<FeedStatus> Open(WorkerId worker, uint32_t dp_rank, std::string source);
  // By worker and rank; of a worker that is just being replaced, the newer.
  std::vector<std::shared_ptr<const FeedStatus>> All() const;

  // With kNone, it has one after all.
  void SetProblem(WorkerId worker, Problem problem);
  Problem ProblemOf(WorkerId worker) const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<FeedStatus>> feeds_;  // guarded by mutex_
  std::map<WorkerId, Problem> problems_;                  // guarded by mutex_
};

}  // namespace fathom
