// Which prompts were recently sent to which ranks?
//
// Two questions that no event can answer in time:
//   believed  A burst of requests with the same new prefix must not scatter: the first of them will
//             have it cached before the others need it. So a sent prompt is believed to be cached
//             until its first byte (at most a minute), and then for `outlives`, until events have
//             had the time to confirm it.
//   shared    Concurrent requests hold a common prefix only once.
//
// Both influence the choice. Neither is ever reported as cached.
//
// Replicas   What happens to a prompt is news for the other replicas of this router, if somebody
//            listens. What they have sent is believed here as well, as long as they say; it is
//            never shared, because their requests' contexts are counted by them.
// Precision  By prompt marks (text/tokens/prompt_marks.h): up to a sixteenth too shallow, never too
//            deep.
// Threads    Any; sharded locks. Prompts with the same beginning share a shard.
// Memory     At most kMostMarks marks; prompts beyond that are not remembered, only counted. Of
// other
//            replicas kMostForeign more, so that these cannot push out our own. News that nobody
//            takes is bounded by kMostNews and kMostNewsMarks; the oldest is dropped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "router/routing/mark_table.h"
#include "text/tokens/prompt_marks.h"

namespace fathom {

class SentPrompts {
 public:
  static constexpr size_t kMostMarks = 4 << 20;
  static constexpr size_t kMostForeign = 1 << 20;
  static constexpr size_t kMostNewsMarks = 1 << 18;

  // `outlives`: how long a prompt is believed to be cached after its first byte.
  explicit SentPrompts(Duration outlives) : outlives_(outlives) {}

  struct Found {
    RankLabel rank;
    uint32_t believed = 0;  // tokens
    uint32_t shared = 0;
  };
  // Writes into `found` every rank that was sent a prompt with the same beginning.
  void Find(std::span<const PromptMark> marks, TimePoint now, std::vector<Found>& found);

  // One prompt that was sent. The owner must call End().
  class Sending {
   public:
    Sending() = default;
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;

    // Tokens that are remembered.
    uint32_t covered() const { return marks_.empty() ? 0 : marks_.back().tokens; }

   private:
    friend class SentPrompts;
    std::vector<PromptMark> marks_;  // empty: not remembered
    RankLabel rank_;
    bool prefilling_ = false;
    TimePoint believed_until_{};
    uint64_t told_ = 0;  // as which news; 0: as none
  };
  // Returns how many of its tokens no running request held there before. Tokens after the last mark
  // are not counted; 0 if the prompt is not remembered.
  uint64_t Begin(Sending& sending, RankLabel rank, std::span<const PromptMark> marks,
                 TimePoint now);
  void FirstByte(Sending& sending, TimePoint now);
  // Without a first byte there is no belief. Returns how many of its tokens no running request
  // holds there any more.
  uint64_t End(Sending& sending, TimePoint now);

  // Drops the expired beliefs in all shards. Otherwise a shard drops its own when it is used.
  void ExpireAll(TimePoint now);

  // From now on there is news.
  void Listen() { listened_.store(true, std::memory_order_relaxed); }
  struct News {
    uint64_t id = 0;  // another one for each prompt
    RankLabel rank;
    TimePoint until{};              // when the belief ends; in the past: it has
    std::vector<PromptMark> marks;  // empty: as in the news before
  };
  // Appends what has happened since the last call. News of a prompt is in order.
  void TakeNews(std::vector<News>& news);

  // A prompt that another replica has sent. False: there is no room. Otherwise the caller must end
  // the belief with the same arguments, within MarkTable::Node::kLongestPrefill.
  bool Believe(RankLabel rank, std::span<const PromptMark> marks, TimePoint now);
  void Disbelieve(RankLabel rank, std::span<const PromptMark> marks);
  // Marks of such prompts, each counted as often as it is believed.
  size_t foreign() const { return foreign_.load(std::memory_order_relaxed); }

  size_t marks() const { return marks_.load(std::memory_order_relaxed); }
  uint64_t forgotten() const { return forgotten_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kShards = 64;
  static constexpr size_t kMostNews = 1024;  // in a shard

  struct Ending {  // a belief that has not expired although its request has ended
    TimePoint until;
    RankLabel rank;
    std::vector<PromptMark> marks;
  };
  struct Shard {
    std::mutex mutex;
    MarkTable table;             // guarded by mutex
    std::deque<Ending> endings;  // guarded by mutex; by time
    std::deque<News> news;       // guarded by mutex
  };

  Shard& ShardOf(std::span<const PromptMark> marks) { return shards_[marks.front().key % kShards]; }
  // With the shard's mutex held.
  void Expire(Shard& shard, TimePoint now);
  void Drop(Shard& shard, const PromptMark& mark, RankLabel rank);
  void Tell(Shard& shard, const Sending& sending, TimePoint until);
  void DropNews(Shard& shard);

  const Duration outlives_;
  std::array<Shard, kShards> shards_;
  std::atomic<size_t> marks_{0};
  std::atomic<size_t> foreign_{0};
  std::atomic<uint64_t> forgotten_{0};
  // Relaxed, pair with nothing.
  std::atomic<bool> listened_{false};
  std::atomic<uint64_t> told_{0};
  std::atomic<size_t> news_marks_{0};
};

}  // namespace fathom
