#include "lab/bench/routing_report.h"

#include <algorithm>

#include "codec/json.h"

namespace fathom {
namespace {

double Milliseconds(Duration d) { return Seconds(d) * 1e3; }

void WriteTimes(JsonWriter& w, std::string_view name, const std::vector<Duration>& sorted) {
  w.Key(name).BeginObject();
  w.Key("p50").Number(Milliseconds(Quantile(sorted, 0.5)));
  w.Key("p90").Number(Milliseconds(Quantile(sorted, 0.9)));
  w.Key("p99").Number(Milliseconds(Quantile(sorted, 0.99)));
  w.Key("mean").Number(Milliseconds(Mean(sorted)));
  w.EndObject();
}

}  // namespace

std::string RoutingReport(ReplayPolicy policy, const ReplayReport& report, double ideal,
                          double wall_seconds) {
  const double lasted = std::max(Seconds(report.lasted), 1e-9);
  JsonWriter w;
  w.BeginObject().Key("policy").String(Name(policy));
  w.Key("requests").Unsigned(report.requests).Key("refused").Unsigned(report.refused);
  w.Key("reuse").Number(report.reuse()).Key("ideal_reuse").Number(ideal);
  const auto prompts = static_cast<double>(std::max<uint64_t>(report.prompt_tokens, 1));
  w.Key("missed").Number(report.missed_tokens / prompts);
  WriteTimes(w, "ttft_ms", report.first_token);
  WriteTimes(w, "between_tokens_ms", report.between_tokens);
  w.Key("lasted_s").Number(lasted);
  w.Key("requests_per_second").Number(static_cast<double>(report.requests) / lasted);
  w.Key("tokens_per_second").Number(static_cast<double>(report.generated_tokens) / lasted);
  w.Key("imbalance").Number(report.imbalance());
  w.Key("preemptions").Unsigned(report.preemptions);
  w.Key("waits").Unsigned(report.waits.size());
  w.Key("wait_mean_ms").Number(Milliseconds(Mean(report.waits)));
  w.Key("decision_ns").BeginObject();
  w.Key("p50").Number(static_cast<double>(Quantile(report.decisions, 0.5).count()));
  w.Key("p99").Number(static_cast<double>(Quantile(report.decisions, 0.99).count()));
  w.Key("mean").Number(static_cast<double>(Mean(report.decisions).count()));
  w.EndObject();
  w.Key("books_empty").Bool(report.books_empty).Key("wall_seconds").Number(wall_seconds);
  w.EndObject();
  return w.Take();
}

}  // namespace fathom
