// What do the events contain that TensorRT-LLM returns to a poll (POST /kv_cache_events)?
//
// The answer is a JSON array of events. Unlike a message of a stream it cannot be decoded without
// earlier ones, so each worker has its own decoder, which remembers for each rank:
//
//   block size  No event contains it. It is the token count of a block that has a successor, in the
//               same event or because a later event names it as parent. Until then events are held
//               back, in order, at most kMaxHeldEvents of them (and kMaxHeldTokens). Beyond that
//               the oldest are dropped, and the caller sees the gap in the numbers.
//   partial     The engine also announces and removes blocks with fewer tokens than the block size.
//               They are not stored, and their removal is not passed on.
//   moved       A block whose cache level changes becomes a MovedEvent, and is remembered like
//               those that were stored outside the device.
//   elsewhere   A removal does not contain the cache level. Blocks stored outside the device are
//               therefore remembered with their level.
//   window      With several attention windows only the largest is used; the others do not hold
//               whole prompts. When a larger one appears after blocks were stored for a smaller
//               one, all earlier events become invalid: a ClearedEvent comes first, with the next
//               event that is not held back.
//
//      +------ larger window, smaller event id, block with more tokens than block size ------+
//      v                                                                                     |
//   size unknown: hold  ------ a block that has a successor ------>  size known: release
//                                                                    held events, pass on
//
// An event id that is smaller than the one before means a new engine process. A block with more
// tokens than the block size means that the learned size was wrong. Both start over with a
// ClearedEvent.
//
// Numbers  Every event that has a number is returned once and in order, with an empty list if it
//          does not concern blocks, so that a caller can check that the numbers of each rank are
//          consecutive. After a gap the rank's blocks are unknown, but the decoder's state stays
//          valid.
// Errors   A body that is not a JSON array is an error (the peer's). An invalid event inside is
//          counted and returned with an empty list.
// Memory   kMaxRemembered hashes per rank, and the held events; kMaxRanks ranks.
// Threads  One.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "router/events/cache_event.h"
#include "router/events/trtllm_event.h"

namespace fathom {

struct PolledEvent {
  uint64_t id = 0;
  uint32_t rank = 0;
  std::vector<CacheEvent> events;
  friend bool operator==(const PolledEvent&, const PolledEvent&) = default;
};

class TrtllmDecoder {
 public:
  static constexpr size_t kMaxHeldEvents = 4096;
  static constexpr size_t kMaxHeldTokens = size_t{1} << 22;
  static constexpr size_t kMaxRemembered = size_t{1} << 20;
  static constexpr size_t kMaxRanks = 1024;

  struct Counters {
    uint64_t other_window = 0;  // events of smaller windows
    uint64_t malformed = 0;     // invalid events, and those of an unknown type
    uint64_t partial = 0;       // blocks with fewer tokens than the block size
    uint64_t moved = 0;         // blocks whose cache level changed
    uint64_t dropped = 0;       // events lost because the block size stayed unknown
    uint64_t restarts = 0;      // times a rank started over
    uint64_t untracked = 0;     // blocks outside the device beyond kMaxRemembered
    std::string first_problem;  // of the malformed events
  };

  Result<std::vector<PolledEvent>> Decode(std::string_view body);

  // The two halves of Decode(), for events that do not come in order: what an answer contains, as
  // it is; and one event after those before it.
  Result<std::vector<TrtllmEvent>> Read(std::string_view body);
  std::vector<PolledEvent> Take(TrtllmEvent event);

  // The rank's engine is a new process: forgets all that was learned about it.
  void Forget(uint32_t rank) { ranks_.erase(rank); }
  // What another decoder has learned about the rank, by the events up to and with `last_id`.
  // Partial blocks are not among it: removals of them are those of blocks that are not known.
  struct Past {
    uint64_t last_id = 0;
    uint64_t window = 0;
    uint32_t block_size = 0;
    std::vector<std::pair<uint64_t, Tier>> elsewhere;  // blocks that are not on the device
  };
  void Resume(uint32_t rank, const Past& past);

  // 0: not known yet.
  uint32_t block_size(uint32_t rank) const;
  // The largest attention window that was seen.
  uint64_t window(uint32_t rank) const;
  // Events of the rank that wait for the block size.
  size_t held(uint32_t rank) const;
  // Token count of the largest held block; 0 if no event is held.
  uint32_t largest_held(uint32_t rank) const;
  const Counters& counters() const { return counters_; }

 private:
  struct Rank {
    uint64_t last_id = 0;
    bool begun = false;   // last_id is valid
    bool stored = false;  // blocks were stored for this window
    uint64_t window = 0;
    uint32_t block_size = 0;
    bool clear_due = false;
    std::deque<TrtllmEvent> held;
    size_t held_tokens = 0;
    // Level of the blocks that are not on the device; nullopt: a partial block, which is not
    // stored.
    std::unordered_map<uint64_t, std::optional<Tier>> places;
  };

  using Output = std::vector<PolledEvent>;

  void TakeOne(TrtllmEvent event, Output& out);
  void Admit(Rank& rank, TrtllmEvent event, Output& out);
  void StartAgain(Rank& rank, Output& out);
  static void Learn(Rank& rank, const TrtllmStored& stored);
  void Hold(Rank& rank, TrtllmEvent event);
  void Release(Rank& rank, Output& out);
  void Emit(Rank& rank, TrtllmEvent& event, Output& out);
  void EmitStored(Rank& rank, const TrtllmEvent& event, TrtllmStored& stored,
                  std::vector<CacheEvent>& out);
  void EmitRemoved(Rank& rank, const TrtllmEvent& event, const TrtllmRemoved& removed,
                   std::vector<CacheEvent>& out);
  void EmitMoved(Rank& rank, const TrtllmEvent& event, const TrtllmMoved& moved,
                 std::vector<CacheEvent>& out);
  static bool IsConsistent(const Rank& rank, const TrtllmStored& stored);
  bool Accept(Rank& rank, const TrtllmBlock& block);
  void Complain(std::string_view where, std::string_view problem);

  std::map<uint32_t, Rank> ranks_;
  Counters counters_;
};

}  // namespace fathom
