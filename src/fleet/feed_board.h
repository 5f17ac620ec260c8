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

// The numbers of a feed, in the order in which they are shown.
//   X(name, "counter" or "gauge", what it counts)
#define FATHOM_FEED_NUMBERS(X)                                                                \
  X(batches, "counter", "Event batches applied")                                              \
  X(stored_blocks, "counter", "Blocks that the engine stored, copies included")               \
  X(removed_blocks, "counter", "Blocks that the engine removed, copies included")             \
  X(clears, "counter", "Times that the engine emptied its cache")                             \
  X(gaps, "counter", "Times that batches were missing in the stream")                         \
  X(repaired_batches, "counter", "Missing batches that a replay brought")                     \
  X(lost_batches, "counter", "Missing batches that nothing brought")                          \
  X(duplicate_batches, "counter", "Batches that came twice")                                  \
  X(malformed_batches, "counter", "Batches that could not be read")                           \
  X(malformed_events, "counter", "Events inside a batch that made no sense")                  \
  X(ignored_events, "counter", "Events of kinds that say nothing about blocks")               \
  X(stray_messages, "counter", "Messages that are no event batch at all")                     \
  X(other_block_size, "counter", "Events with another block size than the rank's")            \
  X(mismatched_events, "counter", "Events left out: their block size is not the one in use")  \
  X(restarts, "counter", "Times that the engine was found to be a new process")               \
  X(reconnects, "counter", "Times that the connection was lost and made again")               \
  X(resets, "counter", "Times that everything known of the rank was given up")                \
  X(replays, "counter", "Replays asked for")                                                  \
  X(replay_failures, "counter", "Replays that were not answered in time")                     \
  X(copies, "counter", "Stored blocks that the rank held already")                            \
  X(unknown_removed, "counter", "Removals of blocks that were not known")                     \
  X(parked_blocks, "counter", "Blocks whose predecessor was unknown")                         \
  X(adopted_blocks, "counter", "Parked blocks that found their place")                        \
  X(lost_orphans, "counter", "Parked blocks that were given up")                              \
  X(conflicts, "counter", "Block hashes that came with another content than before")          \
  X(evicted_blocks, "counter", "Blocks forgotten because the index reached its memory limit") \
  X(refused_blocks, "counter", "Blocks not taken because the index had no room for them")     \
  X(unsupported_blocks, "counter", "Blocks of cache groups whose reuse rule is not known")    \
  X(blocks, "gauge", "Blocks held")                                                           \
  X(ghosts, "gauge", "Blocks that left before those after them")                              \
  X(orphans, "gauge", "Blocks parked until their predecessor is known")                       \
  X(cache_parts, "gauge", "Tiers and groups that blocks were stored in")                      \
  X(unsupported_groups, "gauge", "Cache groups whose reuse rule is not known")                \
  X(block_size, "gauge", "Tokens per block, as the events say; 0 before the first")

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

#define FATHOM_FEED_FIELD(name, kind, help) FeedNumber name;
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
