// How much work have the other replicas placed on each rank?
//
// The sum of what each origin says of itself. A rank's word counts if it is newer than what the
// origin said of it before, by the message's number; so messages may be lost, come twice or in any
// order. When an origin is forgotten its numbers leave the sums: nothing is ever subtracted that
// was not added, and the sums are computed anew from the origins' words, so that they are exact.
//
// Threads  One.
// Memory   An entry per origin and rank that it has used, at most kMostRanks per origin.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "router/fleet/foreign_load.h"
#include "router/replicas/replica_message.h"

namespace fathom {

class ForeignLoads {
 public:
  static constexpr size_t kMostRanks = 16384;

  // Called for each rank whose sum has changed.
  using Tell = std::function<void(const RankLabel& rank, const ForeignLoad& sum)>;
  explicit ForeignLoads(Tell tell) : tell_(std::move(tell)) {}

  void Take(const std::string& origin, uint64_t number, const Gauges& gauges, TimePoint now);
  void Forget(std::string_view origin);

  ForeignLoad SumOf(const RankLabel& rank) const;

  // What one origin has in flight, over all ranks.
  struct Total {
    uint64_t requests = 0;
    double queued = 0;
  };
  Total Of(std::string_view origin) const;

 private:
  struct ByLabel {
    bool operator()(const RankLabel& a, const RankLabel& b) const {
      return a.worker != b.worker ? a.worker < b.worker : a.dp_rank < b.dp_rank;
    }
  };
  struct Word {
    uint64_t number = 0;  // of the message; an idle rank stays, so that older messages do not count
    RankGauge gauge;
    TimePoint busy_since{};
  };
  using Words = std::map<RankLabel, Word, ByLabel>;

  // Returns whether the word is news.
  static bool Set(Word& word, uint64_t number, const RankGauge& gauge, TimePoint now);
  void TellSum(const RankLabel& rank) const;

  const Tell tell_;
  std::map<std::string, Words, std::less<>> origins_;
};

}  // namespace fathom
