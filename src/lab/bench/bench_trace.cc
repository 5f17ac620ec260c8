#include "lab/bench/bench_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/exit_status.h"
#include "codec/json.h"
#include "lab/bench/bench_settings.h"
#include "lab/load/playback.h"
#include "lab/replay/trace.h"

namespace fathom {
namespace {

constexpr std::string_view kTraceUsage =
    "usage: fathom bench trace URL TRACE [requests=N] [arrivals=1] [model=NAME] [api-key=KEY]\n"
    "Prompts are token ids. `arrivals` times faster than the trace. Prints one JSON object, times\n"
    "in milliseconds from when each request was due.\n";

struct TraceBenchPlan {
  PlaybackOptions playback;
  uint64_t requests = 0;  // of the trace; 0: all
  double arrivals = 1;
};

std::vector<PlaybackRequest> RequestsOf(const std::vector<TraceRequest>& trace,
                                        const TraceBenchPlan& plan) {
  const size_t most = plan.requests == 0 ? trace.size() : plan.requests;
  std::vector<PlaybackRequest> requests;
  for (size_t i = 0; i < std::min(most, trace.size()); ++i) {
    const double at = static_cast<double>(trace[i].at.count()) / plan.arrivals;
    requests.push_back({.at = Duration(std::llround(at)),
                        .prompt = PromptOf(trace[i]),
                        .max_tokens = trace[i].output});
  }
  return requests;
}

Task<void> PlayThenStop(Playback& playback, Loop& loop) {
  auto playing = playback.Run();
  co_await playing;
  loop.Stop();
}

PlaybackReport PlayTrace(const TraceBenchPlan& plan, std::vector<PlaybackRequest> requests) {
  Loop loop;
  Resolver resolver;
  Playback playback(loop, resolver, plan.playback, std::move(requests));
  loop.Post([&] { Spawn(PlayThenStop(playback, loop)); });
  loop.Run();
  return playback.report();
}

void WriteTraceTimes(JsonWriter& w, std::string_view name, const LatencyHistogram& times) {
  const auto milliseconds = [](Duration d) { return Seconds(d) * 1e3; };
  w.Key(name).BeginObject();
  w.Key("p50").Number(milliseconds(times.Percentile(50)));
  w.Key("p90").Number(milliseconds(times.Percentile(90)));
  w.Key("p99").Number(milliseconds(times.Percentile(99)));
  w.Key("mean").Number(milliseconds(times.mean()));
  w.EndObject();
}

std::string TraceReportOf(const PlaybackReport& report) {
  const auto prompts = static_cast<double>(std::max<uint64_t>(report.prompt_tokens, 1));
  JsonWriter w;
  w.BeginObject().Key("started").Unsigned(report.started);
  w.Key("completed").Unsigned(report.completed).Key("errors").Unsigned(report.error_count());
  w.Key("errors_by_status").BeginObject();
  for (const auto& [status, count] : report.errors) w.Key(std::to_string(status)).Unsigned(count);
  w.EndObject().Key("first_problem").String(report.first_problem);
  w.Key("reuse").Number(static_cast<double>(report.cached_tokens) / prompts);
  w.Key("announced").Unsigned(report.announced);
  w.Key("announced_reuse").Number(static_cast<double>(report.announced_cached_tokens) / prompts);
  WriteTraceTimes(w, "ttft_ms", report.first_byte);
  WriteTraceTimes(w, "total_ms", report.total);
  WriteTraceTimes(w, "lag_ms", report.lag);
  w.Key("seconds").Number(report.seconds);
  w.EndObject();
  return w.Take();
}

}  // namespace

int RunBenchTrace(std::span<const std::string_view> args) {
  if (args.size() < 2) return RefuseBench("URL or TRACE is missing", kTraceUsage);
  auto url = Url::Parse(args[0]);
  if (!url) return RefuseBench(url.error().what, kTraceUsage);
  if (url->tls()) return RefuseBench("https is not supported here", kTraceUsage);
  TraceBenchPlan plan;
  plan.playback.endpoint.url = *std::move(url);
  const BenchSetting settings[] = {{"requests", &plan.requests},
                                   {"arrivals", &plan.arrivals, 1e-6},
                                   {"model", &plan.playback.model},
                                   {"api-key", &plan.playback.api_key}};
  if (const auto set = ReadSettings(args.subspan(2), settings); !set) {
    return RefuseBench(set.error().what, kTraceUsage);
  }
  const auto trace = ReadTrace(std::string(args[1]));
  if (!trace) return RefuseBench(trace.error().what, kTraceUsage);
  const PlaybackReport report = PlayTrace(plan, RequestsOf(*trace, plan));
  fmt::print("{}\n", TraceReportOf(report));
  return report.error_count() == 0 ? kExitFine : kExitFailed;
}

}  // namespace fathom
