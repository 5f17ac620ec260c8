// How much work have the other replicas placed on each rank?
//
// The sum of what each origin says of itself. A rank's word counts if it is newer than what the
// origin said of it before, by the message's number; so messages may be lost, come twice or in any
// order. When an origin is forgotten its numbers leave the sums: nothing is ever subtracted that
// was not added, and the sums are computed anew from the origins' words, so that they are exact.
//
// What is kept  A rank that is idle keeps its number as long as an older message could still pass
//               the gate (OriginGate::kWindow numbers), then it is erased. "All others of this
//               range are idle" is also said of ranks that have no entry yet: the newest number of
//               each such range is kept as long.
// Threads       One.
// Memory        At most kMostRanks entries and kMostRanges per origin.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "router/fleet/foreign_load.h"
#include "router/replicas/replica_message.h"

namespace fathom {

class ForeignLoads {
 public:
  static constexpr size_t kMostRanks = 16384;
  static constexpr size_t kMostRanges = 64;

  // Called for each rank whose sum has changed.
  using Tell = std::function<void(const RankLabel& rank, const ForeignLoad& sum)>;
  explicit ForeignLoads(Tell tell) : tell_(std::move(tell)) {}

  // A message that has passed the gate.
  void Take(const std::string& origin, uint64_t number, const Gauges& gauges, TimePoint now);
  void Forget(std::string_view origin);
  ForeignLoad SumOf(const RankLabel& rank) const;

  // What one origin has in flight, over all ranks.
  struct Total {
    uint64_t requests = 0;
    double queued = 0;
  };
  Total Of(std::string_view origin) const;
  // Entries of one origin, idle ones included.
  size_t RanksOf(std::string_view origin) const;

 private:
  struct ByLabel {
    bool operator()(const RankLabel& a, const RankLabel& b) const {
      return a.worker != b.worker ? a.worker < b.worker : a.dp_rank < b.dp_rank;
    }
  };
  struct LabelHash {
    size_t operator()(const RankLabel& label) const {
      return label.worker ^ (uint64_t{label.dp_rank} * 0x9e3779b97f4a7c15u);
    }
  };
  struct Word {
    uint64_t number = 0;  // of the message
    RankGauge gauge;
    TimePoint busy_since{};
  };
  using Words = std::map<RankLabel, Word, ByLabel>;
  struct WholeRange {
    Gauges::Range range;
    uint64_t number = 0;
  };
  struct Origin {
    Words words;
    std::vector<WholeRange> wholes;
    uint64_t floor = 0;  // older messages do not count: more is known than can be kept
    uint64_t newest = 0;
    uint64_t swept = 0;
  };

  // Returns whether the word is news.
  static bool Set(Word& word, uint64_t number, const RankGauge& gauge, TimePoint now);
  static bool SetIdle(Word& word, uint64_t number);
  static bool IdleSince(const Origin& origin, uint64_t number, const RankLabel& rank);
  void TakeNamed(Origin& origin, uint64_t number, const Gauges& gauges, TimePoint now,
                 std::vector<RankLabel>& changed);
  static void TakeWhole(Origin& origin, uint64_t number, const Gauges::Range& range,
                        std::vector<RankLabel>& changed);
  static void KeepWhole(Origin& origin, uint64_t number, const Gauges::Range& range);
  void Sweep(Origin& origin);
  void ForgetIdle(Origin& origin, uint64_t number);
  // The word is about to be erased.
  void Drop(const RankLabel& rank, const Word& word);
  void TellSum(const RankLabel& rank) const;

  const Tell tell_;
  std::map<std::string, Origin, std::less<>> origins_;
  // All origins' words of each rank that has one, so that a sum costs a look at these alone.
  std::unordered_map<RankLabel, std::vector<const Word*>, LabelHash> ranks_;
};

}  // namespace fathom
