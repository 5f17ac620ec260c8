#include "router/events/polled_order.h"

#include <algorithm>
#include <limits>

namespace fathom {
namespace {

// A count that no engine reaches by restarts, and one that none reaches while a router does not
// hear of it: a replica that is out of its mind must not use up the numbers of all.
constexpr uint64_t kMostProcesses = uint64_t{1} << 48;
constexpr uint64_t kMostProcessesMissed = 1024;

size_t MemoryOf(const TrtllmEvent& event) {
  size_t bytes = sizeof(event) + 64;
  if (const auto* stored = std::get_if<TrtllmStored>(&event.data)) {
    for (const TrtllmBlock& block : stored->blocks) {
      bytes += sizeof(block) + block.tokens.size() * sizeof(TokenId) +
               block.keys.size() * sizeof(uint64_t);
    }
  } else if (const auto* removed = std::get_if<TrtllmRemoved>(&event.data)) {
    bytes += removed->hashes.size() * sizeof(uint64_t);
  }
  return bytes;
}

// One process hands out ids in order: those that were known before the poll are not among its
// answer.
bool IsOfLaterProcess(const std::vector<TrtllmEvent>& events, const PolledView& sent) {
  return std::ranges::any_of(events, [&](const TrtllmEvent& event) {
    const auto known = sent.next.find(event.rank);
    return known != sent.next.end() && event.id < known->second;
  });
}

}  // namespace

PolledOrder::PolledOrder(PolledView known, TimePoint now) {
  if (known.process == 0 || known.process > kMostProcesses) return;
  view_.process = known.process;
  TakeView(known, now);
}

std::optional<uint64_t> PolledOrder::next(uint32_t rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? std::nullopt : found->second.next;
}

bool PolledOrder::KnowsMoreThan(const PolledView& told) const {
  if (told.process != view_.process) return told.process < view_.process;
  return std::ranges::any_of(view_.next, [&](const auto& known) {
    const auto other = told.next.find(known.first);
    return other == told.next.end() || other->second < known.second;
  });
}

bool PolledOrder::TakeOwn(const PolledView& sent, std::vector<TrtllmEvent> events, TimePoint now) {
  const bool later = IsOfLaterProcess(events, sent);
  if (view_.process == 0) {
    BeginProcess(1);
  } else if (sent.process == view_.process) {
    if (later) BeginProcess(view_.process + 1);
  } else if (sent.process != 0 && !later) {
    // A new process was heard of while the poll was on its way: this is perhaps an answer of the
    // one before.
    return false;
  }
  InsertAll(std::move(events), now);
  return !contradiction_;
}

void PolledOrder::TakeHeard(const PolledView& told, std::vector<TrtllmEvent> events,
                            TimePoint now) {
  const uint64_t most = view_.process == 0 ? kMostProcesses : view_.process + kMostProcessesMissed;
  if (told.process == 0 || told.process < view_.process || told.process > most) return;
  if (told.process > view_.process) BeginProcess(told.process);
  if (ready_bytes_ <= kMostReadyBytes) InsertAll(std::move(events), now);
  if (told.process == view_.process) TakeView(told, now);
}

bool PolledOrder::BeginAt(uint32_t number, uint64_t next, TimePoint now) {
  if (ranks_.size() >= kMostRanks && !ranks_.contains(number)) return false;
  Rank& rank = ranks_[number];
  if (rank.next) return false;
  while (!rank.held.empty() && rank.held.begin()->first < next) {
    held_bytes_ -= MemoryOf(rank.held.begin()->second.event);
    rank.held.erase(rank.held.begin());
  }
  rank.next = rank.first = next;
  rank.behind_since = now;
  uint64_t& known = view_.next[number];
  known = std::max(known, next);
  PassHeld(rank);
  return true;
}

void PolledOrder::BeginProcess(uint64_t process) {
  const bool first = view_.process == 0;
  view_ = {.process = process, .next = {}};
  ranks_.clear();
  held_bytes_ = 0;
  ready_.clear();
  ready_bytes_ = 0;
  if (!first) ready_.push_back({.what = Step::What::kRestart});
}

void PolledOrder::TakeView(const PolledView& told, TimePoint now) {
  for (const auto& [number, next] : told.next) {
    if (ranks_.size() >= kMostRanks && !ranks_.contains(number)) continue;
    Rank& rank = ranks_[number];
    if (!IsBehind(number, rank)) rank.behind_since = now;
    uint64_t& known = view_.next[number];
    known = std::max(known, next);
  }
}

void PolledOrder::InsertAll(std::vector<TrtllmEvent> events, TimePoint now) {
  for (TrtllmEvent& event : events) {
    if (Insert(std::move(event), now)) continue;
    // Which of the two processes lives is not known: what comes next will tell.
    BeginProcess(view_.process + 1);
    contradiction_ = true;
    return;
  }
}

bool PolledOrder::Insert(TrtllmEvent event, TimePoint now) {
  constexpr uint64_t kLastId = std::numeric_limits<uint64_t>::max();
  const bool too_many = ranks_.size() >= kMostRanks && !ranks_.contains(event.rank);
  if (too_many || event.id == kLastId) return true;
  Rank& rank = ranks_[event.rank];
  if (rank.next && event.id < *rank.next) return !WasApplied(rank, event.id);
  uint64_t& known = view_.next[event.rank];
  known = std::max(known, event.id + 1);
  const bool due = rank.next ? event.id == *rank.next : event.id == 0;
  if (!due) return Hold(rank, std::move(event), now);
  Pass(rank, std::move(event));
  PassHeld(rank);
  return true;
}

bool PolledOrder::Hold(Rank& rank, TrtllmEvent event, TimePoint now) {
  const size_t bytes = MemoryOf(event);
  const uint64_t id = event.id;
  if (!rank.held.try_emplace(id, Held{std::move(event), now}).second) return false;
  held_bytes_ += bytes;
  for (auto& [number, other] : ranks_) {
    while (held_bytes_ > kMostHeldBytes && !other.held.empty()) Jump(number, other, now);
  }
  return true;
}

void PolledOrder::Pass(Rank& rank, TrtllmEvent event) {
  rank.next = event.id + 1;
  ready_bytes_ += MemoryOf(event);
  const uint32_t number = event.rank;
  ready_.push_back({.what = Step::What::kEvent, .rank = number, .event = std::move(event)});
}

void PolledOrder::PassHeld(Rank& rank) {
  while (!rank.held.empty() && rank.held.begin()->first == *rank.next) {
    auto node = rank.held.extract(rank.held.begin());
    held_bytes_ -= MemoryOf(node.mapped().event);
    Pass(rank, std::move(node.mapped().event));
  }
}

// Goes on after what is missing.
void PolledOrder::Jump(uint32_t number, Rank& rank, TimePoint now) {
  const uint64_t to = rank.held.empty() ? view_.next[number] : rank.held.begin()->first;
  if (!rank.next) {
    rank.first = to;
  } else {
    const uint64_t from = *rank.next;
    rank.skipped.emplace_back(from, to);
    if (rank.skipped.size() > kMostSkipped) {
      rank.first = rank.skipped.front().second;
      rank.skipped.pop_front();
    }
    ready_.push_back({.what = Step::What::kGap, .rank = number, .lost = to - from});
  }
  rank.next = to;
  rank.behind_since = now;
  PassHeld(rank);
}

bool PolledOrder::IsBehind(uint32_t number, const Rank& rank) const {
  if (!rank.held.empty()) return true;
  const auto known = view_.next.find(number);
  return known != view_.next.end() && known->second > rank.next.value_or(0);
}

TimePoint PolledOrder::BehindSince(const Rank& rank) const {
  return rank.held.empty() ? rank.behind_since : rank.held.begin()->second.since;
}

void PolledOrder::Expire(TimePoint now, Duration patience) {
  for (auto& [number, rank] : ranks_) {
    while (IsBehind(number, rank) && now - BehindSince(rank) >= patience) Jump(number, rank, now);
  }
}

bool PolledOrder::waiting() const {
  return std::ranges::any_of(
      ranks_, [this](const auto& rank) { return IsBehind(rank.first, rank.second); });
}

// An id that was left out may come late; another one comes once.
bool PolledOrder::WasApplied(const Rank& rank, uint64_t id) {
  if (id < rank.first) return false;
  return std::ranges::none_of(
      rank.skipped, [id](const auto& range) { return id >= range.first && id < range.second; });
}

std::optional<PolledOrder::Step> PolledOrder::Next() {
  if (ready_.empty()) return std::nullopt;
  Step step = std::move(ready_.front());
  ready_.pop_front();
  if (step.what == Step::What::kEvent) ready_bytes_ -= MemoryOf(step.event);
  return step;
}

}  // namespace fathom
