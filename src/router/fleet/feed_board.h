// What does each rank's stream of KV events deliver, and is it healthy?
//
// The follower of a stream opens a FeedStatus for it and keeps it up to date; the admin pages and
// the metrics read them.
//
// Threads  Board: any. A status is written by one thread; its numbers are plain counts that order
//          nothing else.
#pragma once

#include <array>
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

// The numbers of a feed, in display order. Each is described in metrics/feed_families.h, under
// kv_router_feed_ and its name.
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
  X(cut_connections, "_total")    \
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
  X(removed_predecessors, "")     \
  X(orphans, "")                  \
  X(cache_parts, "")              \
  X(unsupported_groups, "")       \
  X(block_size, "")

// The result of connecting to the port that events should come from.
enum class FeedReach : uint8_t {
  kUnknown,
  kOpen,        // a listener accepts connections
  kRefused,     // nothing listens
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

  // Of stored_blocks, and of removed_blocks and unknown_removed: what the engine does now. The rest
  // came in replays, and may be hours old.
  FeedNumber live_stored;
  FeedNumber live_removed;

  std::atomic<bool> connected{false};
  std::atomic<FeedReach> reach{FeedReach::kUnknown};
  std::atomic<int64_t> last_sequence{-1};  // of the last applied batch
  // When the last batch was published, as far as is known: steady clock, nanoseconds; 0: never.
  std::atomic<int64_t> last_event{0};
};

// Why a worker has no stream to follow.
enum class NoFeed : uint8_t {
  kNone,
  kPublisherOff,  // the engine reports that its publisher is off
  kDialsOut,      // the engine connects to an address that the router does not bind
  kOther,
};

class FeedBoard {
 public:
  struct Problem {
    NoFeed kind = NoFeed::kNone;
    std::string text;  // for operators, with the fix
  };
  // The lag of events: by the engines' timestamps, and from the first byte of an answer.
  Histogram lag_by_timestamp;
  Histogram lag_after_first_byte;

  // Publishers that connected to --kv-events-bind and were turned away or cut off, by reason, in
  // the order of ZmtpRefusal.
  static constexpr std::array<std::string_view, 5> kRefusals = {"address", "key", "connections",
                                                                "protocol", "limit"};
  std::array<FeedNumber, kRefusals.size()> refused_publishers;

  FeedBoard();

  // The status is listed as long as the returned pointer is held.
  std::shared_ptr<FeedStatus> Open(WorkerId worker, uint32_t dp_rank, std::string source);
  using Feeds = std::vector<std::shared_ptr<const FeedStatus>>;
  // Sorted by worker and rank; for a worker that is just being replaced, the newer one.
  Feeds All() const;
  // Those of one worker.
  Feeds Of(WorkerId worker) const;

  // kNone clears the problem.
  void SetProblem(WorkerId worker, Problem problem);
  Problem ProblemOf(WorkerId worker) const;

 private:
  using Opened = std::vector<std::weak_ptr<FeedStatus>>;  // a later one of the same rank is newer
  static void Append(const Opened& opened, Feeds& feeds);
  void ForgetClosed();  // with mutex_ held

  mutable std::mutex mutex_;
  std::map<WorkerId, Opened> feeds_;      // guarded by mutex_
  size_t forget_in_ = 1;                  // guarded by mutex_; after so many more are opened
  std::map<WorkerId, Problem> problems_;  // guarded by mutex_
};

}  // namespace fathom
