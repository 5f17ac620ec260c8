#include "lab/bench/bench_mock.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "base/exit_status.h"
#include "codec/json.h"
#include "lab/bench/bench_settings.h"
#include "lab/mock/engine_core.h"
#include "lab/replay/trace.h"
#include "metrics/latency_histogram.h"

namespace fathom {
namespace {

constexpr std::string_view kMockUsage =
    "usage: fathom bench mock TRACE [requests=N] [engines=N] [block-size=N] [profile=NAME]\n"
    "         [threads=N]\n"
    "TRACE has a JSON object per line: timestamp (ms), input_length, output_length, hash_ids (one\n"
    "per 512 tokens). It is repeated, with fresh ids each time, until there are enough requests.\n";

struct MockBenchPlan {
  uint64_t requests = 1'000'000;
  uint64_t engines = 8;
  uint64_t threads = 2;
  uint32_t block_size = 16;
  std::string profile = "h200-llama-3.1-8b";
};

struct Tally {
  uint64_t requests = 0;
  uint64_t refused = 0;
  EngineCounters counters;
  Duration virtual_time{};
  LatencyHistogram first_token;
};

// One engine with its share of the requests: every engines-th one.
class TracedEngine {
 public:
  TracedEngine(const std::vector<TraceRequest>& trace, const MockBenchPlan& plan, uint64_t number,
               const TimingProfile& profile)
      : trace_(trace),
        plan_(plan),
        next_(number),
        ids_(IdsEnd(trace)),
        core_(OptionsOf(plan), profile) {
    lasts_ = trace.back().at + std::chrono::seconds(1);
  }

  Tally Run() {
    EngineStep step;
    for (;;) {
      while (next_ < plan_.requests && Arrival(next_) <= now_) Submit();
      if (!core_.Step(step)) {
        if (next_ >= plan_.requests) break;
        now_ = Arrival(next_);
        continue;
      }
      now_ += step.duration;
      for (const EngineOutput& output : step.outputs) Take(output);
    }
    tally_.counters = core_.counters();
    tally_.virtual_time = now_;
    return std::move(tally_);
  }

 private:
  static EngineOptions OptionsOf(const MockBenchPlan& plan) {
    EngineOptions options;
    options.block_size = plan.block_size;
    options.num_blocks = 262144 / plan.block_size + 1;
    options.publish_events = false;
    return options;
  }

  Duration Arrival(uint64_t index) const {
    return trace_[index % trace_.size()].at + lasts_ * static_cast<int64_t>(index / trace_.size());
  }

  void Submit() {
    const TraceRequest& request = trace_[next_ % trace_.size()];
    const auto id = core_.Submit(
        {.prompt = PromptOf(request, next_ / trace_.size() * ids_), .max_tokens = request.output});
    id ? void(waiting_.emplace(*id, Arrival(next_))) : void(++tally_.refused);
    ++tally_.requests;
    next_ += plan_.engines;
  }

  void Take(const EngineOutput& output) {
    const auto first = waiting_.find(output.sequence);
    if (first == waiting_.end()) return;
    tally_.first_token.Record(now_ - first->second);
    waiting_.erase(first);
  }

  const std::vector<TraceRequest>& trace_;
  const MockBenchPlan& plan_;
  uint64_t next_;
  uint64_t ids_;
  Duration lasts_{};
  Duration now_{};
  EngineCore core_;
  std::unordered_map<SequenceId, Duration> waiting_;  // for their first token, since
  Tally tally_;
};

std::vector<Tally> RunAll(const std::vector<TraceRequest>& trace, const MockBenchPlan& plan,
                          const TimingProfile& profile) {
  std::vector<Tally> tallies(plan.engines);
  std::atomic<uint64_t> next{0};
  std::vector<std::jthread> threads;
  for (uint64_t i = 0; i < plan.threads; ++i) {
    threads.emplace_back([&] {
      for (uint64_t number; (number = next.fetch_add(1)) < plan.engines;) {
        tallies[number] = TracedEngine(trace, plan, number, profile).Run();
      }
    });
  }
  threads.clear();  // joins
  return tallies;
}

std::string MockReportOf(const MockBenchPlan& plan, const std::vector<Tally>& tallies,
                         double seconds) {
  Tally sum;
  double virtual_hours = 0;
  for (const Tally& tally : tallies) {
    sum.requests += tally.requests;
    sum.refused += tally.refused;
    sum.counters.steps += tally.counters.steps;
    sum.counters.preemptions += tally.counters.preemptions;
    sum.counters.prompt_tokens += tally.counters.prompt_tokens;
    sum.counters.cached_tokens += tally.counters.cached_tokens;
    sum.counters.generated_tokens += tally.counters.generated_tokens;
    sum.first_token.Add(tally.first_token);
    virtual_hours += Seconds(tally.virtual_time) / 3600;
  }
  const auto share = static_cast<double>(sum.counters.cached_tokens) /
                     static_cast<double>(std::max<uint64_t>(sum.counters.prompt_tokens, 1));
  JsonWriter w;
  w.BeginObject().Key("requests").Unsigned(sum.requests).Key("refused").Unsigned(sum.refused);
  w.Key("engines").Unsigned(plan.engines).Key("threads").Unsigned(plan.threads);
  w.Key("block_size").Unsigned(plan.block_size).Key("profile").String(plan.profile);
  w.Key("seconds").Number(seconds).Key("virtual_engine_hours").Number(virtual_hours);
  w.Key("times_real_time").Number(virtual_hours * 3600 / seconds);
  w.Key("requests_per_second").Number(static_cast<double>(sum.requests) / seconds);
  w.Key("prompt_tokens").Unsigned(sum.counters.prompt_tokens);
  w.Key("generated_tokens").Unsigned(sum.counters.generated_tokens);
  w.Key("steps").Unsigned(sum.counters.steps);
  w.Key("preemptions").Unsigned(sum.counters.preemptions);
  w.Key("reused").Number(share);
  w.Key("ttft_p50").Number(Seconds(sum.first_token.Percentile(50)));
  w.Key("ttft_p99").Number(Seconds(sum.first_token.Percentile(99)));
  w.EndObject();
  return w.Take();
}

}  // namespace

int RunBenchMock(std::span<const std::string_view> args) {
  if (args.empty()) return RefuseBench("the trace is missing", kMockUsage);
  MockBenchPlan plan;
  plan.threads = std::max(1u, std::thread::hardware_concurrency());
  const BenchSetting settings[] = {{"requests", &plan.requests},
                                   {"engines", &plan.engines},
                                   {"threads", &plan.threads},
                                   {"block-size", &plan.block_size, 1, 1024},
                                   {"profile", &plan.profile}};
  const auto set = ReadSettings(args.subspan(1), settings);
  if (!set) return RefuseBench(set.error().what, kMockUsage);
  const auto profile = TimingProfile::Named(plan.profile);
  if (!profile) return RefuseBench(profile.error().what, kMockUsage);
  const auto trace = ReadTrace(std::string(args[0]));
  if (!trace) return RefuseBench(trace.error().what, kMockUsage);
  const auto begun = std::chrono::steady_clock::now();
  const auto tallies = RunAll(*trace, plan, **profile);
  const double seconds = Seconds(std::chrono::steady_clock::now() - begun);
  fmt::print("{}\n", MockReportOf(plan, tallies, seconds));
  return kExitFine;
}

}  // namespace fathom
