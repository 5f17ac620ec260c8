#include "lab/bench/bench_fleet.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/exit_status.h"
#include "base/text.h"
#include "codec/json.h"
#include "lab/bench/bench_settings.h"
#include "lab/bench/fleet_rig.h"
#include "lab/bench/median.h"

namespace fathom {
namespace {

constexpr std::string_view kFleetUsage =
    "usage: fathom bench fleet [--json] [ranks=8,64,512,4096] [models=1,8] [tokens=2048] "
    "[runs=2000]\n"
    "Workers of one rank each join, prove their block sizes and are routed to. Prints "
    "microseconds\n"
    "per decision without the lookup in the index, which is printed apart.\n";

struct FleetBenchPlan {
  std::string ranks = "8,64,512,4096";
  std::string models = "1,8";
  uint64_t tokens = 2048;
  uint64_t runs = 2000;
};

struct Row {
  uint64_t ranks = 0;
  uint64_t models = 0;
  double decision_us = 0;  // of a fleet that streams its answers
  double whole_us = 0;     // of one that does not
  double idle_us = 0;      // of a fleet without requests
  double lookup_us = 0;
  double join_s = 0;
  double prove_s = 0;
  double idle_cpu_percent = 0;  // of a core
  double metrics_ms = 0;
  uint64_t metrics_bytes = 0;
};

Result<std::vector<uint64_t>> ReadNumbers(std::string_view text, uint64_t most) {
  std::vector<uint64_t> numbers;
  for (const std::string_view part : SplitAny(text, ",")) {
    const auto number = ParseDecimal(part);
    if (!number || *number == 0 || *number > most) {
      return Fail(Blame::kCaller, "'{}' is not a number from 1 to {}", part, most);
    }
    numbers.push_back(*number);
  }
  return numbers;
}

Duration CpuNow() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Seconds of CPU.
template <class F>
double Timed(F&& work) {
  const Duration begun = CpuNow();
  work();
  return Seconds(CpuNow() - begun);
}

// The best median of a few rounds, because other programs can only add to it. False: no rank was
// chosen.
bool MeasureDecisions(FleetRig& rig, uint64_t runs, double& decision_us, double& lookup_us) {
  constexpr uint64_t kRounds = 10;
  decision_us = lookup_us = INFINITY;
  for (uint64_t round = 0; round < kRounds; ++round) {
    std::vector<Duration> decisions;
    std::vector<Duration> lookups;
    for (uint64_t i = 0; i <= runs / kRounds; ++i) {
      const FleetRig::Cost cost = rig.Route();
      if (!cost.right) return false;
      decisions.push_back(cost.decision);
      lookups.push_back(cost.lookup);
    }
    decision_us = std::min(decision_us, MedianMicroseconds(decisions));
    lookup_us = std::min(lookup_us, MedianMicroseconds(lookups));
  }
  return true;
}

// The same in a fleet with another load.
bool MeasureWith(FleetPlan::Load load, FleetPlan fleet, const FleetBenchPlan& plan,
                 double& decision_us) {
  fleet.load = load;
  FleetRig rig(fleet);
  rig.Join();
  rig.Prove();
  rig.Fill();
  double lookup_us = 0;  // does not depend on the load
  return MeasureDecisions(rig, plan.runs, decision_us, lookup_us);
}

double IdlePercent(FleetRig& rig) {
  constexpr int kSeconds = 10;
  const double took = Timed([&] {
    for (int i = 0; i < 4 * kSeconds; ++i) rig.TickTrust();
    for (int i = 0; i < 10 * kSeconds; ++i) rig.TickSizes();
  });
  return took / kSeconds * 100;
}

// nullopt: a decision was wrong.
std::optional<Row> MeasureFleet(const FleetBenchPlan& plan, uint64_t ranks, uint64_t models) {
  Row row{.ranks = ranks, .models = models};
  FleetPlan fleet{.ranks = ranks, .models = models, .tokens = plan.tokens};
  FleetRig rig(fleet);
  row.join_s = Timed([&] { rig.Join(); });
  row.prove_s = Timed([&] { rig.Prove(); });
  rig.Fill();
  if (!MeasureDecisions(rig, plan.runs, row.decision_us, row.lookup_us)) return std::nullopt;
  row.idle_cpu_percent = IdlePercent(rig);
  row.metrics_ms = Timed([&] { row.metrics_bytes = rig.Metrics().size(); }) * 1e3;
  const bool measured = MeasureWith(FleetPlan::Load::kWholeAnswers, fleet, plan, row.whole_us) &&
                        MeasureWith(FleetPlan::Load::kNone, fleet, plan, row.idle_us);
  return measured ? std::optional(row) : std::nullopt;
}

std::string FleetReportOf(const std::vector<Row>& rows) {
  JsonWriter w;
  w.BeginObject().Key("rows").BeginArray();
  for (const Row& row : rows) {
    w.BeginObject().Key("ranks").Unsigned(row.ranks).Key("models").Unsigned(row.models);
    w.Key("decision_us").Number(row.decision_us);
    w.Key("whole_answers_decision_us").Number(row.whole_us);
    w.Key("idle_decision_us").Number(row.idle_us);
    w.Key("lookup_us").Number(row.lookup_us);
    w.Key("join_seconds").Number(row.join_s).Key("prove_seconds").Number(row.prove_s);
    w.Key("idle_cpu_percent").Number(row.idle_cpu_percent);
    w.Key("metrics_ms").Number(row.metrics_ms).Key("metrics_bytes").Unsigned(row.metrics_bytes);
    w.EndObject();
  }
  w.EndArray().EndObject();
  return w.Take();
}

std::string TableOf(const std::vector<Row>& rows) {
  std::string text =
      fmt::format("{:>6} {:>6} {:>11} {:>8} {:>8} {:>9} {:>7} {:>8} {:>6} {:>11} {:>10}\n", "ranks",
                  "models", "decision us", "whole us", "idle us", "lookup us", "join s", "prove s",
                  "idle %", "/metrics ms", "/metrics B");
  for (const Row& row : rows) {
    text += fmt::format(
        "{:>6} {:>6} {:>11.1f} {:>8.1f} {:>8.1f} {:>9.1f} {:>7.3f} {:>8.3f} {:>6.2f} {:>11.1f} "
        "{:>10}\n",
        row.ranks, row.models, row.decision_us, row.whole_us, row.idle_us, row.lookup_us,
        row.join_s, row.prove_s, row.idle_cpu_percent, row.metrics_ms, row.metrics_bytes);
  }
  return text;
}

}  // namespace

int RunBenchFleet(std::span<const std::string_view> args) {
  FleetBenchPlan plan;
  std::vector<std::string_view> words(args.begin(), args.end());
  const bool json = std::erase(words, "--json") > 0;
  const BenchSetting settings[] = {{"ranks", &plan.ranks},
                                   {"models", &plan.models},
                                   {"tokens", &plan.tokens, 64, 1 << 20},
                                   {"runs", &plan.runs, 1, 1 << 24}};
  if (const auto set = ReadSettings(words, settings); !set)
    return RefuseBench(set.error().what, kFleetUsage);
  const auto ranks = ReadNumbers(plan.ranks, Fleet::kMaxWorkers);
  const auto models = ReadNumbers(plan.models, 1024);
  if (!ranks || !models) return RefuseBench((!ranks ? ranks : models).error().what, kFleetUsage);
  std::vector<Row> rows;
  for (const uint64_t count : *ranks) {
    for (const uint64_t names : *models) {
      const auto row = MeasureFleet(plan, count, names);
      if (!row) {
        fmt::print(stderr, "fathom bench: a decision chose no rank\n");
        return kExitFailed;
      }
      rows.push_back(*row);
    }
  }
  json ? fmt::print("{}\n", FleetReportOf(rows)) : fmt::print("{}", TableOf(rows));
  return kExitFine;
}

}  // namespace fathom
