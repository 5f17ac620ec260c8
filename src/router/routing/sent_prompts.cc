#include "router/routing/sent_prompts.h"

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

std::pair<uint64_t, uint32_t> NameOf(const RankLabel& rank) { return {rank.worker, rank.dp_rank}; }

std::pair<uint64_t, uint32_t> ByName(const SentPrompts::Found& found) { return NameOf(found.rank); }

}  // namespace

void SentPrompts::Find(std::span<const PromptMark> marks, TimePoint now,
                       std::vector<Found>& found) {
  found.clear();
  if (marks.empty()) return;
  Shard& shard = ShardOf(marks);
  const std::lock_guard lock(shard.mutex);
  Expire(shard, now);
  for (const PromptMark& mark : marks) {
    const size_t before = found.size();
    const bool any = shard.table.ForEach(mark.key, [&](const MarkTable::Node& node) {
      const auto known = std::span(found).first(before);
      auto at = std::ranges::lower_bound(known, NameOf(node.rank), {}, ByName);
      const bool here = at != known.end() && at->rank == node.rank;
      Found& of = here ? *at : found.emplace_back(Found{.rank = node.rank});
      if (node.believed(now)) of.believed = mark.tokens;
      if (node.running > 0) of.shared = mark.tokens;
    });
    if (!any) return;  // a prompt that reaches further would have this mark, too
    // Many ranks may have it, and most of them at the first mark.
    if (found.size() != before) std::ranges::sort(found, {}, ByName);
  }
}

uint64_t SentPrompts::Begin(Sending& sending, RankLabel rank, std::span<const PromptMark> marks,
                            TimePoint now) {
  if (marks.empty()) return 0;
  const size_t most = kMostMarks + foreign_.load(std::memory_order_relaxed);
  if (marks_.load(std::memory_order_relaxed) + marks.size() > most) {
    forgotten_.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  sending.marks_.assign(marks.begin(), marks.end());
  sending.rank_ = rank;
  sending.prefilling_ = true;
  sending.believed_until_ = {};
  sending.told_ = 0;
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
  if (listened_.load(std::memory_order_relaxed)) {
    Tell(shard, sending, now + MarkTable::Node::kLongestPrefill);
    sending.told_ = shard.news.back().id;
  }
  return brought;
}

// The first time with its marks.
void SentPrompts::Tell(Shard& shard, const Sending& sending, TimePoint until) {
  News news{.id = sending.told_, .rank = sending.rank_, .until = until};
  if (news.id == 0) {
    news.id = told_.fetch_add(1, std::memory_order_relaxed) + 1;
    news.marks = sending.marks_;
    news_marks_.fetch_add(news.marks.size(), std::memory_order_relaxed);
  }
  shard.news.push_back(std::move(news));
  const auto too_many = [&] {
    return shard.news.size() > kMostNews ||
           news_marks_.load(std::memory_order_relaxed) > kMostNewsMarks;
  };
  while (shard.news.size() > 1 && too_many()) DropNews(shard);
}

void SentPrompts::DropNews(Shard& shard) {
  news_marks_.fetch_sub(shard.news.front().marks.size(), std::memory_order_relaxed);
  shard.news.pop_front();
}

void SentPrompts::TakeNews(std::vector<News>& news) {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    while (!shard.news.empty()) {
      news.push_back(shard.news.front());
      DropNews(shard);
    }
  }
}

bool SentPrompts::Believe(RankLabel rank, std::span<const PromptMark> marks, TimePoint now) {
  if (marks.empty()) return false;
  if (foreign_.load(std::memory_order_relaxed) + marks.size() > kMostForeign) return false;
  foreign_.fetch_add(marks.size(), std::memory_order_relaxed);
  Shard& shard = ShardOf(marks);
  const std::lock_guard lock(shard.mutex);
  const size_t before = shard.table.size();
  for (const PromptMark& mark : marks) {
    MarkTable::Node& node = shard.table.Get(mark.key, rank);
    ++node.prefilling;
    ++node.ending;
    node.sent_last = std::max(node.sent_last, now);
  }
  marks_.fetch_add(shard.table.size() - before, std::memory_order_relaxed);
  return true;
}

void SentPrompts::Disbelieve(RankLabel rank, std::span<const PromptMark> marks) {
  if (marks.empty()) return;
  Shard& shard = ShardOf(marks);
  const std::lock_guard lock(shard.mutex);
  for (const PromptMark& mark : marks) {
    MarkTable::Node* const node = shard.table.Find(mark.key, rank);
    --node->prefilling;
    --node->ending;
    if (node->idle()) Drop(shard, mark, rank);
  }
  foreign_.fetch_sub(marks.size(), std::memory_order_relaxed);
}

void SentPrompts::FirstByte(Sending& sending, TimePoint now) {
  if (sending.marks_.empty() || !sending.prefilling_) return;
  sending.prefilling_ = false;
  sending.believed_until_ = now + outlives_;
  Shard& shard = ShardOf(sending.marks_);
  const std::lock_guard lock(shard.mutex);
  if (sending.told_ != 0) Tell(shard, sending, sending.believed_until_);
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
  if (sending.told_ != 0 && sending.prefilling_) Tell(shard, sending, TimePoint{});
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
    // Requests end nearly in the order of their first bytes, so the list is nearly sorted; a belief
    // may stay until the one before it has expired.
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
