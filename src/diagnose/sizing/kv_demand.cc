#include "diagnose/sizing/kv_demand.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fathom {
namespace {

// 1 - exp(-ratio) is 86 % at 2.
constexpr double kComfortableRatio = 2;
constexpr double kMost = 0.5;

double Positive(double number) { return std::max(0.0, number); }

Duration FromSeconds(double seconds) {
  if (seconds >= Seconds(KvDemand::kForever)) return KvDemand::kForever;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::optional<double> RateOf(const Workload& workload) {
  if (workload.new_tokens_per_second) return Positive(*workload.new_tokens_per_second);
  if (!workload.requests_per_second) return std::nullopt;
  return Positive(*workload.requests_per_second) *
         (Positive(workload.prompt_tokens) + Positive(workload.output_tokens));
}

Retention Judge(double ratio) {
  if (ratio >= kComfortableRatio) return Retention::kComfortable;
  return 1 - std::exp(-ratio) < kMost ? Retention::kGone : Retention::kTight;
}

void JudgeLifetime(double rate, std::optional<Duration> between_turns, KvDemand& demand) {
  demand.new_tokens_per_second = rate;
  const double lives = rate > 0 ? demand.retained_tokens / rate : Seconds(KvDemand::kForever);
  demand.lifetime = FromSeconds(lives);
  if (!between_turns) return;
  const double gap = Positive(Seconds(*between_turns));
  const double ratio = gap > 0 ? Seconds(*demand.lifetime) / gap : INFINITY;
  demand.in_time = 1 - std::exp(-ratio);
  demand.verdict = Judge(ratio);
}

}  // namespace

std::string_view Name(Retention verdict) {
  switch (verdict) {
    case Retention::kUnknown:
      return "unknown";
    case Retention::kComfortable:
      return "comfortable";
    case Retention::kTight:
      return "tight";
    case Retention::kGone:
      return "gone";
  }
  CHECK(false);
}

KvDemand ReckonDemand(const KvCapacity& capacity, const Workload& workload, double host_tokens) {
  const double prompt = Positive(workload.prompt_tokens);
  const double output = Positive(workload.output_tokens);
  const double most = workload.max_sequences ? static_cast<double>(*workload.max_sequences)
                                             : Positive(workload.sequences);
  const double running = std::min(Positive(workload.sequences), most);

  KvDemand demand;
  demand.active_tokens = running * (prompt + output / 2);
  demand.worst_tokens = most * (prompt + output);
  demand.host_tokens = Positive(host_tokens);
  demand.retained_tokens =
      Positive(static_cast<double>(capacity.tokens) - demand.active_tokens) + demand.host_tokens;
  if (prompt + output > 0) demand.idle_contexts = demand.retained_tokens / (prompt + output);
  if (const auto rate = RateOf(workload)) JudgeLifetime(*rate, workload.between_turns, demand);
  // No room at all: no rate is slow enough.
  if (demand.retained_tokens <= 0) demand.verdict = Retention::kGone;
  return demand;
}

}  // namespace fathom
