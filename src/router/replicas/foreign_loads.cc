#include "router/replicas/foreign_loads.h"

#include <algorithm>
#include <utility>

#include "router/replicas/origin_gate.h"

namespace fathom {
namespace {

// Peers may send any numbers. These are more than an engine has, and their sums over all origins do
// not run over.
constexpr uint32_t kMostRequests = 1 << 24;
constexpr uint64_t kMostContext = uint64_t{1} << 48;

// A rank without requests has nothing in flight, whatever rounding has left in its sums.
RankGauge Plain(const RankGauge& told) {
  if (told.idle()) return {.rank = told.rank};
  RankGauge gauge = told;
  gauge.busy_ms = 0;  // kept as a time
  gauge.requests = std::min(told.requests, kMostRequests);
  gauge.waiting = std::min(told.waiting, gauge.requests);
  gauge.context = std::min(told.context, kMostContext);
  gauge.oldest = std::min(told.oldest, told.queued);
  return gauge;
}

}  // namespace

bool ForeignLoads::Set(Word& word, uint64_t number, const RankGauge& told, TimePoint now) {
  if (number <= word.number) return false;
  word.number = number;
  const RankGauge gauge = Plain(told);
  const TimePoint busy_since = now - std::chrono::milliseconds(told.busy_ms);
  const bool same = word.gauge == gauge && word.busy_since == busy_since;
  word.gauge = gauge;
  word.busy_since = busy_since;
  return !same;
}

// Without a name: nothing has begun there since it was named.
bool ForeignLoads::SetIdle(Word& word, uint64_t number) {
  if (number <= word.number) return false;
  word.number = number;
  const bool was_idle = word.gauge.idle();
  word.gauge = {.rank = word.gauge.rank};
  return !was_idle;
}

// Whether a newer message has said that the rank is idle, without a name.
bool ForeignLoads::IdleSince(const Origin& origin, uint64_t number, const RankLabel& rank) {
  const ByLabel before;
  return std::ranges::any_of(origin.wholes, [&](const WholeRange& whole) {
    return whole.number > number && !before(rank, whole.range.from) &&
           !before(whole.range.to, rank);
  });
}

void ForeignLoads::Take(const std::string& name, uint64_t number, const Gauges& gauges,
                        TimePoint now) {
  Origin& origin = origins_[name];
  if (number < origin.floor) return;
  std::vector<RankLabel> changed;
  TakeNamed(origin, number, gauges, now, changed);
  if (gauges.whole) TakeWhole(origin, number, *gauges.whole, changed);
  origin.newest = std::max(origin.newest, number);
  if (origin.newest - origin.swept >= OriginGate::kWindow) Sweep(origin);
  for (const RankLabel& rank : changed) TellSum(rank);
}

void ForeignLoads::TakeNamed(Origin& origin, uint64_t number, const Gauges& gauges, TimePoint now,
                             std::vector<RankLabel>& changed) {
  const bool late = number < origin.newest;
  for (const RankGauge& gauge : gauges.ranks) {
    auto at = origin.words.find(gauge.rank);
    if (at == origin.words.end()) {
      if (origin.words.size() >= kMostRanks && !late) ForgetIdle(origin, number);
      if (origin.words.size() >= kMostRanks) continue;
      if (late && IdleSince(origin, number, gauge.rank)) continue;
      at = origin.words.emplace(gauge.rank, Word{.gauge = {.rank = gauge.rank}}).first;
      ranks_[gauge.rank].push_back(&at->second);
    }
    if (Set(at->second, number, gauge, now)) changed.push_back(gauge.rank);
  }
}

void ForeignLoads::TakeWhole(Origin& origin, uint64_t number, const Gauges::Range& range,
                             std::vector<RankLabel>& changed) {
  const ByLabel before;
  for (auto at = origin.words.lower_bound(range.from);
       at != origin.words.end() && !before(range.to, at->first); ++at) {
    // Set before if the message names it; otherwise it is idle by now.
    if (SetIdle(at->second, number)) changed.push_back(at->first);
  }
  KeepWhole(origin, number, range);
}

void ForeignLoads::KeepWhole(Origin& origin, uint64_t number, const Gauges::Range& range) {
  const auto same = std::ranges::find(origin.wholes, range, &WholeRange::range);
  if (same != origin.wholes.end()) {
    same->number = std::max(same->number, number);
    return;
  }
  if (origin.wholes.size() >= kMostRanges) {
    const auto oldest = std::ranges::min_element(origin.wholes, {}, &WholeRange::number);
    origin.floor = std::max(origin.floor, oldest->number);
    origin.wholes.erase(oldest);
  }
  origin.wholes.push_back({range, number});
}

// Messages that are so old do not pass the gate: no number has to be kept against them.
void ForeignLoads::Sweep(Origin& origin) {
  origin.swept = origin.newest;
  const auto settled = [&](uint64_t number) {
    return origin.newest - number >= OriginGate::kWindow;
  };
  std::erase_if(origin.words, [&](const auto& entry) {
    if (!entry.second.gauge.idle() || !settled(entry.second.number)) return false;
    Drop(entry.first, entry.second);
    return true;
  });
  std::erase_if(origin.wholes, [&](const WholeRange& whole) { return settled(whole.number); });
}

// Makes room. Older messages could make these ranks busy again, so they do not count any more.
void ForeignLoads::ForgetIdle(Origin& origin, uint64_t number) {
  constexpr uint64_t kPause = 64;  // messages: it looks at every word
  if (number - origin.floor < kPause) return;
  origin.floor = number;
  std::erase_if(origin.words, [&](const auto& entry) {
    if (!entry.second.gauge.idle()) return false;
    Drop(entry.first, entry.second);
    return true;
  });
}

void ForeignLoads::Forget(std::string_view origin) {
  const auto found = origins_.find(origin);
  if (found == origins_.end()) return;
  const Words words = std::move(found->second.words);
  origins_.erase(found);
  for (const auto& [rank, word] : words) {
    Drop(rank, word);
    if (!word.gauge.idle()) TellSum(rank);
  }
}

void ForeignLoads::Drop(const RankLabel& rank, const Word& word) {
  const auto found = ranks_.find(rank);
  std::erase(found->second, &word);
  if (found->second.empty()) ranks_.erase(found);
}

void ForeignLoads::TellSum(const RankLabel& rank) const { tell_(rank, SumOf(rank)); }

ForeignLoad ForeignLoads::SumOf(const RankLabel& rank) const {
  ForeignLoad sum;
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return sum;
  for (const Word* const word : found->second) {
    const RankGauge& gauge = word->gauge;
    sum.queued += gauge.queued;
    sum.context += gauge.context;
    sum.requests += gauge.requests;
    sum.waiting += gauge.waiting;
    sum.oldest = std::max(sum.oldest, gauge.oldest);
    // Also of those without a prefill: the end of their last one began that of another.
    sum.busy_since = std::max(sum.busy_since, word->busy_since);
  }
  return sum;
}

ForeignLoads::Total ForeignLoads::Of(std::string_view origin) const {
  Total total;
  const auto found = origins_.find(origin);
  if (found == origins_.end()) return total;
  for (const auto& [rank, word] : found->second.words) {
    total.requests += word.gauge.requests;
    total.queued += word.gauge.queued;
  }
  return total;
}

size_t ForeignLoads::RanksOf(std::string_view origin) const {
  const auto found = origins_.find(origin);
  return found == origins_.end() ? 0 : found->second.words.size();
}

}  // namespace fathom
