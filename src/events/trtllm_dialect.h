// What do the events say that TensorRT-LLM hands out when it is polled (POST /kv_cache_events)?
//
// The answer of a poll is a JSON array of events. Unlike a stream's message it cannot be understood
// alone, so there is one decoder per worker, and it remembers, for each rank:
//
//   block size  No event names it. It is the token count of a block that another one follows, in
//               the same event or because a later event names it as parent. Until then events are
//               kept back, in order, at most kMaxHeldEvents of them (and kMaxHeldTokens); beyond
//               that the oldest are lost, and a caller sees the gap in the numbers.
//   partial     Blocks with fewer tokens than that are announced and removed like others. They are
//               not stored, and their removal is not handed on.
//   moved       A block whose cache level changes is handed on as such, and remembered like those
//               that were stored outside the device.
//   elsewhere   A removal does not say from which level. Blocks stored outside the device are
//               remembered with theirs.
//   window      With several attention windows only the largest counts; the others hold no whole
//               prompt. When a larger one appears after blocks were stored for a smaller one, all
//               that was said so far is void: a ClearedEvent comes first, with the next event that
//               is not held back.
//
//      +------ a larger window, a smaller event id, a block larger than blocks are ------+
//      v                                                                                 |
//   size unknown: hold  ------ a block that another one follows ------>  size known: release
//                                                                        what is held, pass on
//
// An event id that is smaller than the one before means a new engine process, and a block with more
// tokens than the block size means that the size was wrong: both begin again with a ClearedEvent.
//
// Numbers  Every event that has a number comes out once and in order, with an empty list when it
//          says nothing about blocks, so that a caller can check for each rank that they are
//          consecutive. After a gap the rank's blocks are unknown, but this memory is still good.
// Errors   A body that is not a JSON array is an error (the peer's). An event inside that makes no
//          sense is counted and comes out empty.
// Memory   kMaxRemembered hashes per rank, and what is held back; kMaxRanks ranks.
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
#include "events/cache_event.h"
#include "events/trtllm_event.h"

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
    uint64_t ignored = 0;       // kinds that are not known here
    uint64_t other_window = 0;  // events of smaller windows
    uint64_t malformed = 0;     // events that make no sense
    uint64_t partial = 0;       // blocks that were not full
    uint64_t moved = 0;         // blocks that changed their level
    uint64_t dropped = 0;       // events lost because the block size stayed unknown
    uint64_t restarts = 0;      // times a rank began again
    uint64_t untracked = 0;     // blocks outside the device, for which there was no room
    std::string first_problem;  // of the malformed ones
  };

  Result<std::vector<PolledEvent>> Decode(std::string_view body);

  // The rank's engine is a new one: everything is learnt again.
  void Forget(uint32_t rank) { ranks_.erase(rank); }

  // 0: not known yet.
  uint32_t block_size(uint32_t rank) const;
  // Events of the rank that wait for the block size.
  size_t held(uint32_t rank) const;
  // Tokens of the largest block among them; 0 if nothing is held.
  uint32_t largest_held(uint32_t rank) const;
  const Counters& counters() const { return counters_; }

 private:
  struct Rank {
    uint64_t last_id = 0;
    bool begun = false;   // last_id is one
    bool stored = false;  // blocks were stored for this window
    uint64_t window = 0;
    uint32_t block_size = 0;
    bool clear_due = false;
    std::deque<TrtllmEvent> held;
    size_t held_tokens = 0;
    // Blocks that are not simply on the device; nothing: not held, as far as anybody was told.
    std::unordered_map<uint64_t, std::optional<Tier>> places;
  };

  using Output = std::vector<PolledEvent>;

  void DecodeOne(const Json& json, Output& out);
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
