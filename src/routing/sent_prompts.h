// What was sent where just now?
//
// Two questions that no event can answer in time:
//   believed  A burst of requests with the same new prefix must not scatter: the first of them will
//             have it cached before the others need it. So a prompt that was sent is believed to be
//             there until its first byte (a minute at most), and then for a moment, until events
//             have had the time to say so.
//   shared    Requests that run side by side keep a common prefix once.
//
// Both steer the choice. Neither is ever reported as cached.
//
// Precision  By prompt marks (tokens/prompt_marks.h): up to a sixteenth too shallow, never deeper.
// Threads    Any; sharded locks. Prompts that begin alike share a shard.
// Memory     At most kMostMarks marks; prompts beyond that are not remembered, and counted.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "routing/mark_table.h"
#include "tokens/prompt_marks.h"

namespace fathom {

class SentPrompts {
 public:
  static constexpr size_t kMostMarks = 4 << 20;

  // `outlives`: how long a prompt is believed to be there after its first byte.
  explicit SentPrompts(Duration outlives) : outlives_(outlives) {}

  struct Found {
    RankLabel rank;
    uint32_t believed = 0;  // tokens
    uint32_t shared = 0;
  };
  // Of every rank that was sent something that begins like this, into `found`.
  void Find(std::span<const PromptMark> marks, TimePoint now, std::vector<Found>& found);

  // One prompt on its way. Whoever keeps it must End() it.
  class Sending {
   public:
    Sending() = default;
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;

    // Tokens that are remembered.
    uint32_t covered() const { return marks_.empty() ? 0 : marks_.back().tokens; }

   private:
    friend class SentPrompts;
    std::vector<PromptMark> marks_;  // empty: nothing is remembered
    RankLabel rank_;
    bool prefilling_ = false;
    TimePoint believed_until_{};
  };
  // Returns how many of its tokens nobody kept there before. What lies behind the last mark is not
  // counted, nor anything if the prompt is not remembered.
  uint64_t Begin(Sending& sending, RankLabel rank, std::span<const PromptMark> marks,
                 TimePoint now);
  void FirstByte(Sending& sending, TimePoint now);
  // Without a first byte there is nothing to believe. Returns how many of its tokens nobody keeps
  // there any more.
  uint64_t End(Sending& sending, TimePoint now);

  // Lets go of every belief that is over, wherever it is. Otherwise a shard does so when it is
  // used.
  void ExpireAll(TimePoint now);

  size_t marks() const { return marks_.load(std::memory_order_relaxed); }
  uint64_t forgotten() const { return forgotten_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kShards = 64;

  struct Ending {  // a belief that outlives its request
    TimePoint until;
    RankLabel rank;
    std::vector<PromptMark> marks;
  };
  struct Shard {
    std::mutex mutex;
    MarkTable table;             // guarded by mutex
    std::deque<Ending> endings;  // guarded by mutex; by time
  };

  Shard& ShardOf(std::span<const PromptMark> marks) { return shards_[marks.front().key % kShards]; }
  // With the shard's mutex held.
  void Expire(Shard& shard, TimePoint now);
  void Drop(Shard& shard, const PromptMark& mark, RankLabel rank);

  const Duration outlives_;
  std::array<Shard, kShards> shards_;
  std::atomic<size_t> marks_{0};
  std::atomic<uint64_t> forgotten_{0};
};

}  // namespace fathom
