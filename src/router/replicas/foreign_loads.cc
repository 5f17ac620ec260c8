#include "router/replicas/foreign_loads.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fathom {

bool ForeignLoads::Set(Word& word, uint64_t number, const RankGauge& gauge, TimePoint now) {
  if (number <= word.number) return false;
  word.number = number;
  const bool same = word.gauge == gauge;
  word.gauge = gauge;
  word.busy_since = now - std::chrono::milliseconds(gauge.busy_ms);
  return !same;
}

void ForeignLoads::Take(const std::string& origin, uint64_t number, const Gauges& gauges,
                        TimePoint now) {
  Words& words = origins_[origin];
  std::vector<RankLabel> changed;
  for (const RankGauge& gauge : gauges.ranks) {
    auto at = words.find(gauge.rank);
    if (at == words.end()) {
      if (words.size() >= kMostRanks) continue;
      at = words.emplace(gauge.rank, Word{.gauge = {.rank = gauge.rank}}).first;
    }
    if (Set(at->second, number, gauge, now)) changed.push_back(gauge.rank);
  }
  if (gauges.whole) {
    const ByLabel before;
    for (auto at = words.lower_bound(gauges.whole->from);
         at != words.end() && !before(gauges.whole->to, at->first);) {
      // Set above if the message names it; otherwise it is idle by now, and nothing has begun.
      const TimePoint busy_since = at->second.busy_since;
      if (Set(at->second, number, {.rank = at->first}, now)) {
        at->second.busy_since = busy_since;
        changed.push_back(at->first);
      }
      // Messages that are older than the window of the gate never come: nothing needs the entry.
      const bool settled = at->second.gauge.idle() && at->second.number + 4096 < number;
      at = settled ? words.erase(at) : std::next(at);
    }
  }
  for (const RankLabel& rank : changed) TellSum(rank);
}

void ForeignLoads::Forget(std::string_view origin) {
  const auto found = origins_.find(origin);
  if (found == origins_.end()) return;
  const Words words = std::move(found->second);
  origins_.erase(found);
  for (const auto& [rank, word] : words) {
    if (!word.gauge.idle()) TellSum(rank);
  }
}

void ForeignLoads::TellSum(const RankLabel& rank) const { tell_(rank, SumOf(rank)); }

ForeignLoad ForeignLoads::SumOf(const RankLabel& rank) const {
  ForeignLoad sum;
  for (const auto& [origin, words] : origins_) {
    const auto at = words.find(rank);
    if (at == words.end()) continue;
    const RankGauge& gauge = at->second.gauge;
    sum.queued += gauge.queued;
    sum.context += gauge.context;
    sum.requests += gauge.requests;
    sum.waiting += gauge.waiting;
    sum.oldest = std::max(sum.oldest, gauge.oldest);
    // Also of those without a prefill: the end of their last one began that of another.
    sum.busy_since = std::max(sum.busy_since, at->second.busy_since);
  }
  return sum;
}

ForeignLoads::Total ForeignLoads::Of(std::string_view origin) const {
  Total total;
  const auto found = origins_.find(origin);
  if (found == origins_.end()) return total;
  for (const auto& [rank, word] : found->second) {
    total.requests += word.gauge.requests;
    total.queued += word.gauge.queued;
  }
  return total;
}

}  // namespace fathom
