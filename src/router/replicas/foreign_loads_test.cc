#include "router/replicas/foreign_loads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "router/replicas/origin_gate.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kMidday{std::chrono::hours(12)};

RankGauge GaugeOf(uint64_t worker, uint32_t requests, double queued = 0) {
  return {.rank = {.worker = worker, .dp_rank = 0},
          .queued = queued,
          .context = uint64_t{requests} * 100,
          .requests = requests};
}

Gauges Some(std::vector<RankGauge> ranks) {
  return {.whole = std::nullopt, .ranks = std::move(ranks)};
}

Gauges WholeOf(uint64_t from, uint64_t to, std::vector<RankGauge> ranks) {
  return {.whole = Gauges::Range{.from = {.worker = from, .dp_rank = 0},
                                 .to = {.worker = to, .dp_rank = ~uint32_t{0}}},
          .ranks = std::move(ranks)};
}

// Since when it is busy is no load.
ForeignLoad Timeless(ForeignLoad sum) {
  sum.busy_since = {};
  return sum;
}

// The sums as a listener has them.
class ForeignLoadsTest : public testing::Test {
 protected:
  uint32_t Requests(uint64_t worker) { return sums_[worker].requests; }

  std::map<uint64_t, ForeignLoad> sums_;
  size_t told_ = 0;
  ForeignLoads loads_{[this](const RankLabel& rank, const ForeignLoad& sum) {
    ++told_;
    sums_[rank.worker] = sum;
  }};
};

TEST_F(ForeignLoadsTest, IdleRanksMakeRoomForBusyOnes) {
  std::vector<RankGauge> many;
  for (uint64_t worker = 1; worker <= ForeignLoads::kMostRanks; ++worker) {
    many.push_back(GaugeOf(worker, 1));
  }
  loads_.Take("a", 100, Some(many), kMidday);
  for (RankGauge& gauge : many) gauge.requests = 0;
  loads_.Take("a", 101, Some(many), kMidday);
  EXPECT_EQ(loads_.RanksOf("a"), ForeignLoads::kMostRanks) << "an older message may still come";
  const uint64_t further = ForeignLoads::kMostRanks + 1;
  loads_.Take("a", 165, Some({GaugeOf(further, 3)}), kMidday);
  EXPECT_EQ(Requests(further), 3u);
  EXPECT_EQ(loads_.RanksOf("a"), 1u);
  loads_.Take("a", 99, Some({GaugeOf(1, 9)}), kMidday);
  EXPECT_EQ(Requests(1), 0u) << "it was overtaken";
}

TEST_F(ForeignLoadsTest, AddUpTheOrigins) {
  loads_.Take("a", 1, Some({GaugeOf(1, 2, 10), GaugeOf(2, 1)}), kMidday);
  loads_.Take("b", 9, Some({GaugeOf(1, 3, 0.5)}), kMidday);
  EXPECT_EQ(Requests(1), 5u);
  EXPECT_EQ(sums_[1].queued, 10.5);
  EXPECT_EQ(sums_[1].context, 500u);
  EXPECT_EQ(Requests(2), 1u);
  EXPECT_EQ(loads_.Of("a").requests, 3u);
  EXPECT_EQ(loads_.Of("a").queued, 10);
  EXPECT_EQ(loads_.Of("nobody").requests, 0u);
}

TEST_F(ForeignLoadsTest, TheNewestWordOfARankCounts) {
  loads_.Take("a", 5, Some({GaugeOf(1, 5)}), kMidday);
  loads_.Take("a", 4, Some({GaugeOf(1, 4), GaugeOf(2, 4)}), kMidday);
  EXPECT_EQ(Requests(1), 5u);
  EXPECT_EQ(Requests(2), 4u) << "of this rank it is the newest";
}

TEST_F(ForeignLoadsTest, RanksOfAWholeRangeThatAreNotNamedAreIdle) {
  loads_.Take("a", 1, Some({GaugeOf(1, 1), GaugeOf(2, 2), GaugeOf(7, 7)}), kMidday);
  loads_.Take("a", 2, WholeOf(0, 5, {GaugeOf(2, 3)}), kMidday);
  EXPECT_EQ(Timeless(sums_[1]), ForeignLoad{});
  EXPECT_EQ(Requests(2), 3u);
  EXPECT_EQ(Requests(7), 7u) << "outside the range";
}

TEST_F(ForeignLoadsTest, AnOlderMessageDoesNotUndoAWholeRangeThatDidNotNameTheRank) {
  loads_.Take("a", 2, WholeOf(0, 5, {}), kMidday);
  loads_.Take("a", 1, Some({GaugeOf(3, 1), GaugeOf(6, 1)}), kMidday);
  EXPECT_EQ(Requests(3), 0u);
  EXPECT_EQ(Requests(6), 1u) << "outside the range";
  loads_.Take("a", 3, Some({GaugeOf(3, 4)}), kMidday);
  EXPECT_EQ(Requests(3), 4u);
}

TEST_F(ForeignLoadsTest, SoManyRangesThatTheOldestIsNotKept) {
  for (uint64_t i = 0; i <= ForeignLoads::kMostRanges; ++i) {
    loads_.Take("a", 100 + i, WholeOf(10 * i, 10 * i + 9, {}), kMidday);
  }
  loads_.Take("a", 99, Some({GaugeOf(3, 1)}), kMidday);
  EXPECT_EQ(Requests(3), 0u);
}

TEST_F(ForeignLoadsTest, ForgetOneOriginAlone) {
  loads_.Take("a", 1, Some({GaugeOf(1, 2, 0.1), GaugeOf(2, 1)}), kMidday);
  loads_.Take("b", 1, Some({GaugeOf(1, 3, 0.2)}), kMidday);
  loads_.Forget("a");
  EXPECT_EQ(Requests(1), 3u);
  EXPECT_EQ(sums_[1].queued, 0.2) << "exactly: computed anew, not subtracted";
  EXPECT_EQ(Timeless(sums_[2]), ForeignLoad{});
  loads_.Forget("a");
  loads_.Take("a", 1, Some({GaugeOf(2, 1)}), kMidday);
  EXPECT_EQ(Requests(2), 1u) << "another process counts from the start";
}

TEST_F(ForeignLoadsTest, ARankWithoutRequestsHasNothingInFlight) {
  RankGauge rest = GaugeOf(1, 0, 1e-9);
  rest.context = 3;
  loads_.Take("a", 1, Some({GaugeOf(1, 1, 7)}), kMidday);
  loads_.Take("a", 2, Some({rest}), kMidday);
  EXPECT_EQ(Timeless(sums_[1]), ForeignLoad{});
}

TEST_F(ForeignLoadsTest, HostileNumbersDoNotRunOver) {
  for (const char* const origin : {"a", "b", "c"}) {
    RankGauge gauge = GaugeOf(1, ~uint32_t{0});
    gauge.context = ~uint64_t{0};
    gauge.waiting = ~uint32_t{0};
    gauge.busy_ms = ~uint32_t{0};
    loads_.Take(origin, ~uint64_t{0}, Some({gauge}), kMidday);
  }
  EXPECT_GT(sums_[1].requests, 1u << 24);
  EXPECT_GT(sums_[1].context, uint64_t{1} << 48);
  EXPECT_EQ(sums_[1].waiting, sums_[1].requests);
}

TEST_F(ForeignLoadsTest, WorkInProgressBeganBeforeItWasTold) {
  RankGauge first = GaugeOf(1, 1, 50);
  first.waiting = 1;
  first.oldest = 50;
  first.busy_ms = 30;
  loads_.Take("a", 1, Some({first}), kMidday);
  EXPECT_EQ(sums_[1].oldest, 50);
  EXPECT_EQ(sums_[1].busy_since, kMidday - milliseconds(30));
  // The next one looks alike, and has begun later.
  loads_.Take("a", 2, Some({first}), kMidday + milliseconds(500));
  EXPECT_EQ(sums_[1].busy_since, kMidday + milliseconds(470));
}

TEST_F(ForeignLoadsTest, TellOnlyWhatChanges) {
  loads_.Take("a", 1, Some({GaugeOf(1, 1), GaugeOf(2, 1)}), kMidday);
  EXPECT_EQ(told_, 2u);
  loads_.Take("a", 2, WholeOf(0, 9, {GaugeOf(1, 1), GaugeOf(2, 2)}), kMidday);
  EXPECT_EQ(told_, 3u);
  loads_.Take("a", 3, WholeOf(0, 9, {}), kMidday);
  EXPECT_EQ(told_, 5u);
  loads_.Take("a", 4, WholeOf(0, 9, {}), kMidday);
  EXPECT_EQ(told_, 5u);
}

TEST_F(ForeignLoadsTest, IdleRanksAreErasedWhenNoOlderMessageCanCome) {
  uint64_t number = 0;
  // An origin that never tells whole ranges, with workers that come and go.
  for (uint64_t worker = 0; worker < 3 * OriginGate::kWindow; ++worker) {
    loads_.Take("a", ++number, Some({GaugeOf(worker, 1)}), kMidday);
    loads_.Take("a", ++number, Some({GaugeOf(worker, 0)}), kMidday);
    EXPECT_LE(loads_.RanksOf("a"), 2 * OriginGate::kWindow);
    // The oldest message that the gate lets through does not bring back what it says.
    if (number <= OriginGate::kWindow) continue;
    const uint64_t late = number - OriginGate::kWindow + 1;
    const uint64_t of = (late - 1) / 2;
    loads_.Take("a", late, Some({GaugeOf(of, late % 2 == 1 ? 1 : 0)}), kMidday);
    EXPECT_EQ(Requests(of), 0u);
  }
}

TEST_F(ForeignLoadsTest, ABusyRankStaysHoweverOldItsWordIs) {
  loads_.Take("a", 1, Some({GaugeOf(1, 1)}), kMidday);
  for (uint64_t number = 2; number < 4 * OriginGate::kWindow; ++number) {
    loads_.Take("a", number, Some({GaugeOf(2, number % 2)}), kMidday);
  }
  EXPECT_EQ(Requests(1), 1u);
  EXPECT_EQ(loads_.Of("a").requests, 1u + 1u);
}

TEST_F(ForeignLoadsTest, AnOriginHasAMostOfRanks) {
  std::vector<RankGauge> ranks;
  for (uint64_t worker = 0; worker < ForeignLoads::kMostRanks + 10; ++worker) {
    ranks.push_back(GaugeOf(worker, 1));
  }
  loads_.Take("a", 1, Some(ranks), kMidday);
  EXPECT_EQ(loads_.RanksOf("a"), ForeignLoads::kMostRanks);
  EXPECT_EQ(loads_.Of("a").requests, ForeignLoads::kMostRanks);
}

// Whatever order messages come in, the view is that of the newest word of each rank.
TEST_F(ForeignLoadsTest, AnyOrderGivesTheSameView) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::map<uint64_t, uint32_t> truth;
    std::vector<std::pair<uint64_t, Gauges>> messages;
    for (uint64_t number = 1; number <= 40; ++number) {
      const uint64_t worker = random.Below(8);
      truth[worker] = static_cast<uint32_t>(random.Below(3));
      if (random.Below(4) != 0) {
        messages.emplace_back(number, Some({GaugeOf(worker, truth[worker])}));
        continue;
      }
      std::vector<RankGauge> all;
      for (const auto& [of, requests] : truth) {
        if (requests > 0) all.push_back(GaugeOf(of, requests));
      }
      messages.emplace_back(number, WholeOf(0, 7, all));
    }
    for (size_t i = messages.size(); i > 1; --i) {
      std::swap(messages[i - 1], messages[random.Below(i)]);
    }
    const std::string origin = "seed-" + std::to_string(seed);
    for (const auto& [number, gauges] : messages) {
      loads_.Take(origin, number, gauges, kMidday);
      if (random.Below(4) == 0) loads_.Take(origin, number, gauges, kMidday);
    }
    for (uint64_t worker = 0; worker < 8; ++worker) {
      EXPECT_EQ(Requests(worker), truth[worker]) << "seed " << seed << ", worker " << worker;
    }
    loads_.Forget(origin);
    for (uint64_t worker = 0; worker < 8; ++worker) {
      EXPECT_EQ(Timeless(sums_[worker]), ForeignLoad{}) << "seed " << seed << ", worker " << worker;
    }
  }
}

}  // namespace
}  // namespace fathom
