// fathom bench load: traffic for an OpenAI endpoint, and its latencies as one JSON object.
#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "cli/command.h"
#include "codec/json.h"
#include "lab/bench/bench_cohorts.h"
#include "lab/bench/bench_exchange.h"
#include "lab/bench/bench_fleet.h"
#include "lab/bench/bench_index.h"
#include "lab/bench/bench_keys.h"
#include "lab/bench/bench_mock.h"
#include "lab/bench/bench_replicas.h"
#include "lab/bench/bench_request.h"
#include "lab/bench/bench_routing.h"
#include "lab/bench/bench_snapshot.h"
#include "lab/bench/bench_tokens.h"
#include "lab/bench/bench_trace.h"
#include "lab/bench/bench_trust.h"
#include "lab/load/load.h"

namespace fathom {
namespace {

constexpr std::string_view kUsage =
    "usage: fathom bench load URL [path=/v1/chat/completions] [model=NAME] [concurrency=N]\n"
    "         [requests=N] [seconds=S] [rate=R] [stream=0|1] [prompt-bytes=N] [max-tokens=N]\n"
    "         [ramp=S] [warmup=S] [api-key=KEY]\n"
    "rate 0 keeps `concurrency` requests in flight, the first of them begun over `ramp` seconds;\n"
    "otherwise R requests start every second and latencies count from when each was due. What\n"
    "was due before `warmup` is not timed. Prints one JSON object, times in seconds.\n"
    "       fathom bench mock TRACE [NAME=VALUE]...\n"
    "       fathom bench index TRACE|--ops FILE [NAME=VALUE]...\n"
    "       fathom bench keys [NAME=VALUE]...\n"
    "       fathom bench request [NAME=VALUE]...\n"
    "       fathom bench snapshot [NAME=VALUE]...\n"
    "       fathom bench tokens MODEL_FOLDER [NAME=VALUE]...\n"
    "       fathom bench routing TRACE [NAME=VALUE]...\n"
    "       fathom bench replicas TRACE [NAME=VALUE]...\n"
    "       fathom bench exchange [NAME=VALUE]...\n"
    "       fathom bench cohorts [NAME=VALUE]...\n"
    "       fathom bench trust [NAME=VALUE]...\n"
    "       fathom bench fleet [--json] [NAME=VALUE]...\n"
    "       fathom bench trace URL TRACE [NAME=VALUE]...: see bench/README.md\n";

void WriteLatencies(JsonWriter& w, std::string_view name, const LatencyHistogram& latencies) {
  w.Key(name).BeginObject();
  w.Key("count").Unsigned(latencies.count());
  for (const auto& [label, share] :
       std::map<std::string_view, double>{{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}}) {
    w.Key(label).Number(Seconds(latencies.Percentile(share)));
  }
  w.EndObject();
}

std::string ReportOf(const LoadReport& report) {
  JsonWriter w;
  w.BeginObject().Key("seconds").Number(report.seconds);
  w.Key("started").Unsigned(report.started).Key("completed").Unsigned(report.completed);
  w.Key("errors").Unsigned(report.error_count());
  w.Key("errors_by_status").BeginObject();
  for (const auto& [status, count] : report.errors) w.Key(std::to_string(status)).Unsigned(count);
  w.EndObject();
  w.Key("first_problem").String(report.first_problem);
  w.Key("unsent").Unsigned(report.unsent);
  w.Key("connections").Unsigned(report.connections);
  w.Key("bytes").Unsigned(report.bytes).Key("chunks").Unsigned(report.chunks);
  w.Key("tokens").Unsigned(report.tokens);
  WriteLatencies(w, "first_byte", report.first_byte);
  WriteLatencies(w, "between_chunks", report.between_chunks);
  WriteLatencies(w, "total", report.total);
  WriteLatencies(w, "lag", report.lag);
  w.EndObject();
  return w.Take();
}

int Complain(std::string_view what) {
  fmt::print(stderr, "fathom bench: {}\n{}", what, kUsage);
  return kExitUsage;
}

Result<void> Set(LoadOptions& options, std::string_view key, std::string_view value) {
  const auto number = [&](auto& field) -> Result<void> {
    char* end = nullptr;
    const std::string text(value);
    const double parsed = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || parsed < 0) {
      return Fail(Blame::kCaller, "{}={}: not a number", key, value);
    }
    field = static_cast<std::remove_reference_t<decltype(field)>>(parsed);
    return {};
  };
  const auto time = [&](Duration& field) -> Result<void> {
    double seconds = 0;
    TRY_VOID(number(seconds));
    field = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    return {};
  };
  if (key == "concurrency") return number(options.concurrency);
  if (key == "requests") return number(options.requests);
  if (key == "rate") return number(options.rate);
  if (key == "prompt-bytes") return number(options.prompt_bytes);
  if (key == "max-tokens") return number(options.max_tokens);
  if (key == "stream") return number(options.stream);
  if (key == "seconds") return time(options.duration);
  if (key == "ramp") return time(options.ramp);
  if (key == "warmup") return time(options.warmup);
  if (key == "model") {
    options.model = value;
  } else if (key == "path") {
    options.path = value;
  } else if (key == "api-key") {
    options.api_key = value;
  } else {
    return Fail(Blame::kCaller, "no such setting '{}'", key);
  }
  return {};
}

}  // namespace

int RunBench(std::span<const std::string_view> args) {
  if (!args.empty() && args[0] == "mock") return RunBenchMock(args.subspan(1));
  if (!args.empty() && args[0] == "index") return RunBenchIndex(args.subspan(1));
  if (!args.empty() && args[0] == "keys") return RunBenchKeys(args.subspan(1));
  if (!args.empty() && args[0] == "request") return RunBenchRequest(args.subspan(1));
  if (!args.empty() && args[0] == "snapshot") return RunBenchSnapshot(args.subspan(1));
  if (!args.empty() && args[0] == "tokens") return RunBenchTokens(args.subspan(1));
  if (!args.empty() && args[0] == "routing") return RunBenchRouting(args.subspan(1));
  if (!args.empty() && args[0] == "replicas") return RunBenchReplicas(args.subspan(1));
  if (!args.empty() && args[0] == "exchange") return RunBenchExchange(args.subspan(1));
  if (!args.empty() && args[0] == "cohorts") return RunBenchCohorts(args.subspan(1));
  if (!args.empty() && args[0] == "trust") return RunBenchTrust(args.subspan(1));
  if (!args.empty() && args[0] == "fleet") return RunBenchFleet(args.subspan(1));
  if (!args.empty() && args[0] == "trace") return RunBenchTrace(args.subspan(1));
  if (AsksForHelp(args)) {
    fmt::print("{}", kUsage);
    return kExitFine;
  }
  if (args.size() < 2 || args[0] != "load") return Complain("the URL to put load on is missing");
  auto url = Url::Parse(args[1]);
  if (!url) return Complain(url.error().what);
  LoadOptions options;
  options.endpoint.url = *std::move(url);
  if (options.endpoint.url.tls()) return Complain("https is not supported here");
  for (const std::string_view arg : args.subspan(2)) {
    const size_t equals = arg.find('=');
    if (equals == std::string_view::npos) return Complain(fmt::format("'{}' has no '='", arg));
    const auto set = Set(options, arg.substr(0, equals), arg.substr(equals + 1));
    if (!set) return Complain(set.error().what);
  }
  if (options.requests == 0 && options.duration == Duration::zero()) {
    return Complain("give requests=N or seconds=S");
  }
  const LoadReport report = RunLoad(options);
  fmt::print("{}\n", ReportOf(report));
  return report.completed > 0 ? kExitFine : kExitFailed;
}

}  // namespace fathom
