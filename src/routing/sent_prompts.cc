#include "routing/sent_prompts.h"

#include <algorithm>

namespace fathom {

void SentPrompts::Find(std::span<const PromptMark> marks, TimePoint now,
                       std::vector<Found>& found) {
  found.clear();
  if (marks.empty()) return;
  Shard& shard = ShardOf(marks);
  const std::lock_guard lock(shard.mutex);
  Expire(shard, now);
  for (const PromptMark& mark : marks) {
    const bool any = shard.table.ForEach(mark.key, [&](const MarkTable::Node& node) {
      auto at = std::ranges::find(found, node.rank, &Found::rank);
      if (at == found.end()) at = found.insert(at, Found{.rank = node.rank});
      if (node.believed(now)) at->believed = mark.tokens;
      if (node.running > 0) at->shared = mark.tokens;
    });
    if (!any) return;  // what reaches further would have been here
  }
}

uint64_t SentPrompts::Begin(Sending& sending, RankLabel rank, std::span<const PromptMark> marks,
                            TimePoint now) {
  if (marks.empty()) return 0;
  if (marks_.load(std::memory_order_relaxed) + marks.size() > kMostMarks) {
    forgotten_.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  sending.marks_.assign(marks.begin(), marks.end());
  sending.rank_ = rank;
  sending.prefilling_ = true;
  sending.believed_until_ = {};
  Shard& shard = ShardOf(marks);
  const std::lock_guard lock(shard.mutex);
  Expire(shard, now);
  const size_t before = shard.table.size();
  uint64_t brought = 0;
  uint32_t from = 0;
  for (const PromptMark& mark : marks) {
    MarkTable::Node& node = shard.table.Get(mark.key, rank);
    if (node.running++ == 0) brought += mark.tokens - from;
    ++node.prefilling;
    node.sent_last = now;
    from = mark.tokens;
  }
  marks_.fetch_add(shard.table.size() - before, std::memory_order_relaxed);
  return brought;
}

void SentPrompts::FirstByte(Sending& sending, TimePoint now) {
  if (sending.marks_.empty() || !sending.prefilling_) return;
  sending.prefilling_ = false;
  sending.believed_until_ = now + outlives_;
  Shard& shard = ShardOf(sending.marks_);
  const std::lock_guard lock(shard.mutex);
  for (const PromptMark& mark : sending.marks_) {
    MarkTable::Node* const node = shard.table.Find(mark.key, sending.rank_);
    --node->prefilling;
    node->believed_until = std::max(node->believed_until, sending.believed_until_);
  }
}

uint64_t SentPrompts::End(Sending& sending, TimePoint now) {
  if (sending.marks_.empty()) return 0;
  Shard& shard = ShardOf(sending.marks_);
  const std::lock_guard lock(shard.mutex);
  const bool outlived = now < sending.believed_until_;
  uint64_t taken = 0;
  uint32_t from = 0;
  for (const PromptMark& mark : sending.marks_) {
    MarkTable::Node* const node = shard.table.Find(mark.key, sending.rank_);
    if (--node->running == 0) taken += mark.tokens - from;
    if (sending.prefilling_) --node->prefilling;
    if (outlived) ++node->ending;
    if (node->idle()) Drop(shard, mark, sending.rank_);
    from = mark.tokens;
  }
  if (outlived) {
    // Ended requests come nearly in the order of their first bytes; a belief may wait for one that
    // ends before it.
    shard.endings.push_back({sending.believed_until_, sending.rank_, std::move(sending.marks_)});
  }
  sending.marks_.clear();
  return taken;
}

void SentPrompts::ExpireAll(TimePoint now) {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    Expire(shard, now);
  }
}

void SentPrompts::Expire(Shard& shard, TimePoint now) {
  while (!shard.endings.empty() && shard.endings.front().until <= now) {
    const Ending& ending = shard.endings.front();
    for (const PromptMark& mark : ending.marks) {
      MarkTable::Node* const node = shard.table.Find(mark.key, ending.rank);
      --node->ending;
      if (node->idle()) Drop(shard, mark, ending.rank);
    }
    shard.endings.pop_front();
  }
}

void SentPrompts::Drop(Shard& shard, const PromptMark& mark, RankLabel rank) {
  shard.table.Erase(mark.key, rank);
  marks_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace fathom
