#include "lab/bench/bench_replicas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/exit_status.h"
#include "base/random.h"
#include "base/text.h"
#include "codec/json.h"
#include "lab/bench/bench_settings.h"
#include "lab/bench/routing_report.h"
#include "lab/replay/replay.h"

namespace fathom {
namespace {

constexpr std::string_view kReplicasUsage =
    "usage: fathom bench replicas TRACE [replicas=1,2,4,8] [delays-ms=0,10,100,1000]\n"
    "         [losses=0,1,10] [silent=1] [loads=1] [prompts=1] [ties=1] [jitter=0.5]\n"
    "         [workers=8] [profile=polynomial] [block-size=64] [blocks=16384] [arrivals=1] "
    "[requests=N]\n"
    "         [copies=1] [spread=1] [policy=kv] [events-ms=0] [queue=2] [temperature=0] [seed=1]\n"
    "         [threads=2]\n"
    "Each request goes to a random replica. One replay for a single one; for several, one for "
    "each\n"
    "delay and each loss (percent) of their messages, and with silent=1 one without any. "
    "`requests`\n"
    "of the trace are played `copies` times side by side, each with ids of its own. With spread=1\n"
    "requests of the same time come at random times until the next one. TRACE as for fathom bench\n"
    "routing. Prints one JSON object.\n";

struct ReplicaRun {
  uint32_t replicas = 1;
  std::optional<VirtualNetworkOptions> network;  // nothing: they tell nothing
};

struct ReplicasPlan {
  ReplayOptions replay;
  VirtualExchangeOptions exchange;
  std::string profile = "polynomial";
  std::string policy = "kv";
  std::string replicas = "1,2,4,8";
  std::string delays = "0,10,100,1000";  // milliseconds
  std::string losses = "0,1,10";         // percent
  bool silent = true;
  bool ties = true;  // replicas that hear each other draw among ranks that are as good as equal
  uint64_t requests = 0;  // of the trace; 0: all
  uint64_t copies = 1;
  bool spread = true;
  uint32_t threads = 2;
  double events = 0;  // milliseconds
  std::vector<ReplicaRun> runs;
};

Duration FromMilliseconds(double ms) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
}

Result<std::vector<double>> NumbersIn(std::string_view list, double least, double most) {
  std::vector<double> numbers;
  for (const std::string_view word : SplitAny(list, ",")) {
    const auto number = ParseDecimal(word);
    const double value = number ? static_cast<double>(*number) : -1;
    if (value < least || value > most) {
      return Fail(Blame::kCaller, "'{}' is not a number from {} to {}", word, least, most);
    }
    numbers.push_back(value);
  }
  if (numbers.empty()) return Fail(Blame::kCaller, "an empty list of numbers");
  return numbers;
}

std::vector<BenchSetting> ReplicaSettings(ReplicasPlan& plan) {
  EngineOptions& engine = plan.replay.engine;
  SteeringOptions& steering = plan.replay.router.steering;
  return {
      {"replicas", &plan.replicas},
      {"delays-ms", &plan.delays},
      {"losses", &plan.losses},
      {"silent", &plan.silent},
      {"loads", &plan.exchange.loads},
      {"prompts", &plan.exchange.prompts},
      {"ties", &plan.ties},
      {"jitter", &plan.exchange.network.jitter, 0, 1},
      {"workers", &plan.replay.workers, 1, 65536},
      {"block-size", &engine.block_size, 1, 1024},
      {"blocks", &engine.num_blocks, 2},
      {"profile", &plan.profile},
      {"policy", &plan.policy},
      {"arrivals", &plan.replay.arrivals, 1e-6},
      {"requests", &plan.requests},
      {"copies", &plan.copies, 1, 65536},
      {"spread", &plan.spread},
      {"threads", &plan.threads, 1, 256},
      {"events-ms", &plan.events, 0},
      {"queue", &steering.queue_threshold, 0},
      {"temperature", &steering.weights.temperature, 0},
      {"seed", &plan.replay.router.seed, 0},
  };
}

Result<std::vector<ReplicaRun>> RunsOf(const ReplicasPlan& plan) {
  auto replicas = NumbersIn(plan.replicas, 1, 64);
  if (!replicas) return std::unexpected(std::move(replicas).error());
  auto delays = NumbersIn(plan.delays, 0, 1e6);
  if (!delays) return std::unexpected(std::move(delays).error());
  auto losses = NumbersIn(plan.losses, 0, 100);
  if (!losses) return std::unexpected(std::move(losses).error());
  std::vector<ReplicaRun> runs;
  for (const double count : *replicas) {
    const auto number = static_cast<uint32_t>(count);
    if (number == 1 || plan.silent) runs.push_back({number, std::nullopt});
    if (number == 1) continue;
    for (const double loss : *losses) {
      for (const double delay : *delays) {
        runs.push_back({number, VirtualNetworkOptions{.delay = FromMilliseconds(delay),
                                                      .jitter = plan.exchange.network.jitter,
                                                      .loss = loss / 100}});
      }
    }
  }
  return runs;
}

Result<ReplicasPlan> ReplicasPlanOf(std::span<const std::string_view> words) {
  ReplicasPlan plan;
  plan.replay.engine.block_size = 64;
  TRY_VOID(ReadSettings(words, ReplicaSettings(plan)));
  const auto policy = ParseReplayPolicy(plan.policy);
  if (!policy) return Fail(Blame::kCaller, "no such policy '{}'", plan.policy);
  plan.replay.router.policy = *policy;
  plan.replay.router.event_delay = FromMilliseconds(plan.events);
  plan.replay.engine.publish_events = *policy == ReplayPolicy::kKv;
  auto runs = RunsOf(plan);
  if (!runs) return std::unexpected(std::move(runs).error());
  plan.runs = *std::move(runs);
  return plan;
}

// The times of a trace may be rounded to seconds: no replica can hear of another one's request that
// comes at the same time, and one router would not have to.
void Spread(std::vector<TraceRequest>& trace) {
  Random random(1);
  Duration gap{};  // the last group has that of the one before
  for (size_t begin = 0, end = 0; begin < trace.size(); begin = end) {
    const Duration at = trace[begin].at;
    while (end < trace.size() && trace[end].at == at) ++end;
    if (end < trace.size()) gap = trace[end].at - at;
    std::vector<double> places(end - begin);
    for (double& place : places) place = random.Unit();
    std::ranges::sort(places);
    for (size_t i = begin; i < end; ++i) {
      const double later = places[i - begin] * static_cast<double>(gap.count());
      trace[i].at += Duration(static_cast<int64_t>(later));
    }
  }
}

// The beginning of the trace, several times at the same time.
std::vector<TraceRequest> TraceOf(std::vector<TraceRequest> trace, const ReplicasPlan& plan) {
  if (plan.requests > 0 && plan.requests < trace.size()) trace.resize(plan.requests);
  std::vector<TraceRequest> all;
  all.reserve(trace.size() * plan.copies);
  const uint64_t ids = IdsEnd(trace);
  for (const TraceRequest& request : trace) {
    for (uint64_t copy = 0; copy < plan.copies; ++copy) {
      all.push_back(request);
      for (uint64_t& id : all.back().ids) id += ids * copy;
    }
  }
  if (plan.spread) Spread(all);
  return all;
}

std::string ReplayWith(const std::vector<TraceRequest>& trace, const ReplicasPlan& plan,
                       const TimingProfile& profile, const ReplicaRun& run, double ideal) {
  ReplayOptions options = plan.replay;
  options.replicas = run.replicas;
  if (run.network) {
    options.exchange = plan.exchange;
    options.exchange->network = *run.network;
    options.router.steering.several = plan.ties;
  }
  const auto begun = std::chrono::steady_clock::now();
  const ReplayReport report = RunReplay(trace, options, profile);
  const double seconds = Seconds(std::chrono::steady_clock::now() - begun);
  const auto requests = static_cast<double>(std::max<uint64_t>(report.requests, 1));
  JsonWriter w;
  w.BeginObject().Key("replicas").Unsigned(run.replicas);
  w.Key("exchange").Bool(run.network.has_value());
  const VirtualNetworkOptions network = run.network.value_or(VirtualNetworkOptions{});
  w.Key("delay_ms").Number(Seconds(network.delay) * 1e3);
  w.Key("loss_percent").Number(network.loss * 100);
  w.Key("messages_per_request").Number(static_cast<double>(report.exchanged.messages) / requests);
  w.Key("bytes_per_request").Number(static_cast<double>(report.exchanged.bytes) / requests);
  w.Key("result").Raw(RoutingReport(options.router.policy, report, ideal, seconds));
  w.EndObject();
  return w.Take();
}

std::vector<std::string> ReplayRuns(const std::vector<TraceRequest>& trace,
                                    const ReplicasPlan& plan, const TimingProfile& profile) {
  const double ideal = IdealReuse(trace, plan.replay.engine.block_size);
  std::vector<std::string> reports(plan.runs.size());
  std::atomic<size_t> next{0};
  std::vector<std::jthread> threads;
  for (uint32_t i = 0; i < plan.threads; ++i) {
    threads.emplace_back([&] {
      for (size_t at; (at = next.fetch_add(1)) < reports.size();) {
        reports[at] = ReplayWith(trace, plan, profile, plan.runs[at], ideal);
      }
    });
  }
  threads.clear();  // joins
  return reports;
}

}  // namespace

int RunBenchReplicas(std::span<const std::string_view> args) {
  if (args.empty()) return RefuseBench("the trace is missing", kReplicasUsage);
  const auto plan = ReplicasPlanOf(args.subspan(1));
  if (!plan) return RefuseBench(plan.error().what, kReplicasUsage);
  const auto profile = TimingProfile::Named(plan->profile);
  if (!profile) return RefuseBench(profile.error().what, kReplicasUsage);
  auto trace = ReadTrace(std::string(args[0]));
  if (!trace) return RefuseBench(trace.error().what, kReplicasUsage);
  const auto all = TraceOf(*std::move(trace), *plan);
  fmt::print("{{\"runs\":[{}]}}\n", fmt::join(ReplayRuns(all, *plan, **profile), ","));
  return kExitFine;
}

}  // namespace fathom
