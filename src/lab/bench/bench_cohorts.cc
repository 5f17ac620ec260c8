#include "lab/bench/bench_cohorts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/exit_status.h"
#include "base/random.h"
#include "base/text.h"
#include "codec/json.h"
#include "lab/bench/bench_settings.h"
#include "lab/bench/median.h"
#include "router/routing/steering.h"

namespace fathom {
namespace {

constexpr std::string_view kCohortsUsage =
    "usage: fathom bench cohorts [sizes=16/16,32/16,32,64/16,32,64,2096] [tokens=8192] [ranks=8]\n"
    "         [runs=2000]\n"
    "One fleet per list of block sizes, with the same ranks dealt out to them; the first is what\n"
    "the others are compared with. Of each size one rank holds the whole prompt, the others "
    "less.\n";

constexpr uint64_t kCohortLimit = 1 << 24;
constexpr uint64_t kCohortTurn = 20;  // decisions of one fleet before it is the next one's turn

struct CohortsBenchPlan {
  std::string sizes = "16/16,32/16,32,64/16,32,64,2096";
  uint64_t tokens = 8192;
  uint64_t ranks = 8;
  uint64_t runs = 2000;
  std::vector<std::vector<uint32_t>> fleets;
};

Result<CohortsBenchPlan> CohortsPlanOf(std::span<const std::string_view> words) {
  CohortsBenchPlan plan;
  const BenchSetting settings[] = {{"sizes", &plan.sizes},
                                   {"tokens", &plan.tokens, 1, kCohortLimit},
                                   {"ranks", &plan.ranks, 1, 4096},
                                   {"runs", &plan.runs, 1, kCohortLimit}};
  TRY_VOID(ReadSettings(words, settings));
  for (const std::string_view list : SplitAny(plan.sizes, "/")) {
    std::vector<uint32_t>& fleet = plan.fleets.emplace_back();
    for (const std::string_view word : SplitAny(list, ",")) {
      const auto size = ParseDecimal(word);
      if (!size || *size == 0 || *size > kCohortLimit) {
        return Fail(Blame::kCaller, "sizes: '{}' is not a block size", word);
      }
      fleet.push_back(static_cast<uint32_t>(*size));
    }
    if (fleet.empty() || fleet.size() > plan.ranks) {
      return Fail(Blame::kCaller, "sizes: between 1 and {} for each fleet", plan.ranks);
    }
  }
  if (plan.fleets.empty()) return Fail(Blame::kCaller, "sizes: none");
  return plan;
}

std::vector<TokenId> SeededTokens(uint64_t seed, uint64_t count) {
  Random random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(128'000));
  return tokens;
}

struct CohortTimes {
  std::vector<Duration> whole, marks, lookup, choose;

  void Add(Duration took, const Steering::Stages& stages) {
    whole.push_back(took);
    marks.push_back(stages.hash);
    lookup.push_back(stages.lookup);
    choose.push_back(stages.choose);
  }
};

class CohortFleet {
 public:
  CohortFleet(const CohortsBenchPlan& plan, const std::vector<uint32_t>& sizes,
              std::span<const TokenId> prompt, std::span<const TokenId> other)
      : sizes_(sizes), prompt_(prompt), other_(other) {
    for (uint64_t i = 0; i < plan.ranks; ++i) {
      const uint64_t inside = (plan.ranks - i % sizes.size() - 1) / sizes.size() + 1;
      AddRank(i, sizes[i % sizes.size()], inside - i / sizes.size(), inside);
    }
  }

  void Turn() {
    for (uint64_t i = 0; i < kCohortTurn; ++i) Decide(prompt_, held_);
    for (uint64_t i = 0; i < kCohortTurn; ++i) Decide(other_, missed_);
  }

  bool right() const { return right_; }
  const CohortTimes& held() const { return held_; }
  const CohortTimes& missed() const { return missed_; }
  const std::vector<uint32_t>& sizes() const { return sizes_; }

 private:
  // Holds that part of the prompt, in whole blocks.
  void AddRank(uint64_t number, uint32_t size, uint64_t part, uint64_t of) {
    workers_.push_back(std::make_shared<Worker>(
        WorkerSpec{.url = fmt::format("http://worker-{}", number)}, BreakerOptions{}));
    places_.push_back({workers_.back().get(), &workers_.back()->ranks.only()});
    const BlockShape shape{.size = size};
    holdings_.push_back(index_.Open(places_.back().label(), shape, seat_));
    const size_t blocks = shape.BlocksIn(prompt_.size()) * part / of;
    deepest_ = std::max(deepest_, std::min(blocks * size, shape.MostCached(prompt_.size())));
    if (blocks == 0) return;
    std::vector<uint64_t> keys;
    const auto tokens = prompt_.first(blocks * size);
    KeyChain(tokens, shape, kKeySeed, keys).All();
    keys.resize(blocks);
    holdings_.back()->Store({.hashes = keys, .tokens = tokens}, TimePoint{});
  }

  void Decide(std::span<const TokenId> tokens, CohortTimes& times) {
    const RouteQuestion question{.tokens = tokens, .seed = kKeySeed, .weights = {}};
    const TimePoint begun = std::chrono::steady_clock::now();
    const auto choice = steering_.Decide(question, places_, begun, Steering::Patience::kMayWait);
    times.Add(std::chrono::steady_clock::now() - begun, steering_.stages());
    const size_t expected = &times == &held_ ? deepest_ : 0;
    right_ = right_ && choice.decision->rank().cached[0] == expected;
  }

  const std::vector<uint32_t> sizes_;
  const std::span<const TokenId> prompt_;
  const std::span<const TokenId> other_;  // nobody holds anything of it
  CacheIndex index_{size_t{4} << 30, 1};
  Epochs::Seat seat_{index_.epochs()};
  std::vector<std::shared_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<RankHoldings>> holdings_;
  std::vector<Place> places_;
  SteeringWorld world_{SteeringOptions{}, 1};
  Steering steering_{world_, DepthsOf(&index_), 1};
  size_t deepest_ = 0;  // tokens
  CohortTimes held_;
  CohortTimes missed_;
  bool right_ = true;
};

void WriteCohortTimes(JsonWriter& w, std::string_view name, const CohortTimes& times,
                      const CohortTimes& first) {
  const double whole = MedianMicroseconds(times.whole);
  w.Key(name).BeginObject();
  w.Key("decision_us").Number(whole);
  w.Key("times_the_first").Number(whole / MedianMicroseconds(first.whole));
  w.Key("marks_us").Number(MedianMicroseconds(times.marks));
  w.Key("lookup_us").Number(MedianMicroseconds(times.lookup));
  w.Key("choose_us").Number(MedianMicroseconds(times.choose));
  w.EndObject();
}

std::string CohortsReportOf(const CohortsBenchPlan& plan,
                            const std::vector<std::unique_ptr<CohortFleet>>& fleets) {
  JsonWriter w;
  w.BeginObject().Key("tokens").Unsigned(plan.tokens).Key("ranks").Unsigned(plan.ranks);
  w.Key("fleets").BeginArray();
  for (const auto& fleet : fleets) {
    w.BeginObject().Key("sizes").BeginArray();
    for (const uint32_t size : fleet->sizes()) w.Unsigned(size);
    w.EndArray();
    WriteCohortTimes(w, "held", fleet->held(), fleets.front()->held());
    WriteCohortTimes(w, "missed", fleet->missed(), fleets.front()->missed());
    w.EndObject();
  }
  w.EndArray().EndObject();
  return w.Take();
}

}  // namespace

int RunBenchCohorts(std::span<const std::string_view> args) {
  const auto plan = CohortsPlanOf(args);
  if (!plan) {
    return RefuseBench(plan.error().what, kCohortsUsage);
  }
  const std::vector<TokenId> prompt = SeededTokens(1, plan->tokens);
  const std::vector<TokenId> other = SeededTokens(2, plan->tokens);
  std::vector<std::unique_ptr<CohortFleet>> fleets;
  for (const auto& sizes : plan->fleets) {
    fleets.push_back(std::make_unique<CohortFleet>(*plan, sizes, prompt, other));
  }
  for (uint64_t run = 0; run < plan->runs; run += kCohortTurn) {
    for (const auto& fleet : fleets) fleet->Turn();
  }
  for (const auto& fleet : fleets) {
    if (fleet->right()) continue;
    fmt::print(stderr, "fathom bench: a choice was wrong with blocks of {}\n",
               fmt::join(fleet->sizes(), ", "));
    return kExitFailed;
  }
  fmt::print("{}\n", CohortsReportOf(*plan, fleets));
  return kExitFine;
}

}  // namespace fathom
