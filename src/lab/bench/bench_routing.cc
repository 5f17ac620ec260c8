#include "lab/bench/bench_routing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/exit_status.h"
#include "base/text.h"
#include "lab/bench/bench_settings.h"
#include "lab/bench/routing_report.h"
#include "lab/replay/replay.h"

namespace fathom {
namespace {

constexpr std::string_view kRoutingUsage =
    "usage: fathom bench routing TRACE [policies=round-robin,least-loaded,prefix-hash,text,\n"
    "           approximate,kv,oracle]\n"
    "         [workers=8] [profile=polynomial] [block-size=64] [blocks=16384] [batch=8192]\n"
    "         [seqs=256] [arrivals=1] [requests=N] [delay-ms=0] [seed=1] [threads=2]\n"
    "         [queue=2] [scale=64] [credit=1] [temperature=0] [active-request=0]\n"
    "         [belief-ms=1000] [ttl-s=120] [text-ttl-s=120] [prefix-tokens=1024] "
    "[prefix-bound=1.25]\n"
    "TRACE has a JSON object per line: timestamp (ms), input_length, output_length, hash_ids (one\n"
    "per 512 tokens). `arrivals` times faster. Prints one JSON object.\n";

struct RoutingBenchPlan {
  ReplayOptions replay;
  std::string profile = "polynomial";
  std::string policies = "round-robin,least-loaded,prefix-hash,text,approximate,kv,oracle";
  uint64_t requests = 0;  // of the trace; 0: all
  uint32_t threads = 2;
  double delay = 0;       // milliseconds
  double belief = 1000;   // milliseconds
  double ttl = 120;       // seconds
  double text_ttl = 120;  // seconds
  std::vector<ReplayPolicy> chosen;
};

Duration Of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::vector<BenchSetting> SettingsOf(RoutingBenchPlan& plan) {
  EngineOptions& engine = plan.replay.engine;
  SteeringOptions& steering = plan.replay.router.steering;
  return {
      {"workers", &plan.replay.workers, 1, 4096},
      {"block-size", &engine.block_size, 1, 1024},
      {"blocks", &engine.num_blocks, 2},
      {"batch", &engine.max_num_batched_tokens},
      {"seqs", &engine.max_num_seqs},
      {"profile", &plan.profile},
      {"policies", &plan.policies},
      {"arrivals", &plan.replay.arrivals, 1e-6},
      {"requests", &plan.requests},
      {"threads", &plan.threads, 1, 256},
      {"delay-ms", &plan.delay, 0},
      {"seed", &plan.replay.router.seed, 0},
      {"queue", &steering.queue_threshold, 0},
      {"scale", &steering.weights.prefill_scale, 0},
      {"credit", &steering.weights.overlap_credit, 0},
      {"temperature", &steering.weights.temperature, 0},
      {"active-request", &steering.weights.active_request, 0},
      {"belief-ms", &plan.belief, 0},
      {"ttl-s", &plan.ttl, 0},
      {"text-ttl-s", &plan.text_ttl, 0},
      {"prefix-tokens", &steering.prefix_tokens},
      {"prefix-bound", &steering.prefix_bound, 1},
  };
}

Result<RoutingBenchPlan> RoutingPlanOf(std::span<const std::string_view> words) {
  RoutingBenchPlan plan;
  plan.replay.engine.block_size = 64;
  TRY_VOID(ReadSettings(words, SettingsOf(plan)));
  plan.replay.router.event_delay = Of(plan.delay / 1e3);
  plan.replay.router.steering.belief_outlives = Of(plan.belief / 1e3);
  plan.replay.router.steering.approximate_ttl = Of(plan.ttl);
  plan.replay.router.steering.text_ttl = Of(plan.text_ttl);
  for (const std::string_view name : SplitAny(plan.policies, ",")) {
    const auto policy = ParseReplayPolicy(name);
    if (!policy) return Fail(Blame::kCaller, "no such policy '{}'", name);
    plan.chosen.push_back(*policy);
  }
  return plan;
}

std::string ReplayOne(const std::vector<TraceRequest>& trace, const RoutingBenchPlan& plan,
                      const TimingProfile& profile, ReplayPolicy policy, double ideal) {
  ReplayOptions options = plan.replay;
  options.router.policy = policy;
  options.engine.publish_events = policy == ReplayPolicy::kKv;
  const auto begun = std::chrono::steady_clock::now();
  const ReplayReport report = RunReplay(trace, options, profile);
  const double seconds = Seconds(std::chrono::steady_clock::now() - begun);
  return RoutingReport(policy, report, ideal, seconds);
}

std::vector<std::string> ReplayAll(const std::vector<TraceRequest>& trace,
                                   const RoutingBenchPlan& plan, const TimingProfile& profile) {
  const double ideal = IdealReuse(trace, plan.replay.engine.block_size);
  std::vector<std::string> reports(plan.chosen.size());
  std::atomic<size_t> next{0};
  std::vector<std::jthread> threads;
  for (uint32_t i = 0; i < plan.threads; ++i) {
    threads.emplace_back([&] {
      for (size_t at; (at = next.fetch_add(1)) < reports.size();) {
        reports[at] = ReplayOne(trace, plan, profile, plan.chosen[at], ideal);
      }
    });
  }
  threads.clear();  // joins
  return reports;
}

}  // namespace

int RunBenchRouting(std::span<const std::string_view> args) {
  if (args.empty()) return RefuseBench("the trace is missing", kRoutingUsage);
  const auto plan = RoutingPlanOf(args.subspan(1));
  if (!plan) return RefuseBench(plan.error().what, kRoutingUsage);
  const auto profile = TimingProfile::Named(plan->profile);
  if (!profile) return RefuseBench(profile.error().what, kRoutingUsage);
  auto trace = ReadTrace(std::string(args[0]));
  if (!trace) return RefuseBench(trace.error().what, kRoutingUsage);
  if (plan->requests > 0 && plan->requests < trace->size()) trace->resize(plan->requests);
  const auto reports = ReplayAll(*trace, *plan, **profile);
  fmt::print("{{\"policies\":[{}]}}\n", fmt::join(reports, ","));
  return kExitFine;
}

}  // namespace fathom
