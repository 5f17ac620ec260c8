#include "diagnose/logs/engine_lines.h"

#include <algorithm>

#include "diagnose/logs/log_line.h"

namespace fathom {
namespace {

// Of one status line. Shares are 0 to 1.
struct Status {
  std::optional<double> usage;
  std::optional<uint64_t> running;
  std::optional<uint64_t> waiting;
};

void Add(const Status& status, EngineFacts& facts) {
  if (status.running) facts.max_running = std::max(facts.max_running, *status.running);
  if (status.waiting) facts.max_waiting = std::max(facts.max_waiting, *status.waiting);
  if (!status.usage) return;
  const double usage = std::min(*status.usage, 1.0);
  ++facts.status_lines;
  facts.usage_sum += usage;
  facts.max_usage = std::max(facts.max_usage, usage);
}

std::optional<double> PercentAfter(std::string_view text, std::string_view label) {
  const auto percent = RealAfter(text, label);
  if (!percent) return std::nullopt;
  return std::min(*percent / 100, 1.0);
}

bool TakeConcurrency(std::string_view said, EngineFacts& facts) {
  const auto length = NumberAfter(said, "Maximum concurrency for ");
  const auto times = RealAfter(said, "tokens per request: ");
  if (!length || !times) return false;
  facts.max_model_len = std::max(facts.max_model_len, *length);
  const double before = facts.max_concurrency;
  facts.max_concurrency = before == 0 ? *times : std::min(before, *times);
  return true;
}

bool TakeVllmCapacity(std::string_view said, EngineFacts& facts) {
  const auto tokens = NumberAfter(said, "GPU KV cache size: ");
  if (!tokens) return false;
  facts.kv_tokens.Add(*tokens);
  TakeConcurrency(said, facts);  // newer ones say both at once
  return true;
}

bool TakeVllmStatus(std::string_view said, EngineFacts& facts) {
  const auto usage = PercentAfter(said, "GPU KV cache usage: ");
  if (!usage) return false;
  Add({usage, NumberAfter(said, "Running: "), NumberAfter(said, "Waiting: ")}, facts);
  facts.preemptions += NumberAfter(said, "Preemptions: ").value_or(0);
  if (const auto rate = PercentAfter(said, ", Prefix cache hit rate: ")) facts.hit_rate = rate;
  return true;
}

bool TakeSglangBatch(LogKind kind, std::string_view said, EngineFacts& facts) {
  const auto running = NumberAfter(said, "#running-req: ");
  const auto computed = NumberAfter(said, "#new-token: ");
  if (!running && !computed) return false;
  Add({RealAfter(said, "token usage: "), running, NumberAfter(said, "#queue-req: ")}, facts);
  if (kind == LogKind::kSglangDecode) return true;
  facts.new_tokens += computed.value_or(0);
  facts.cached_tokens += NumberAfter(said, "#cached-token: ").value_or(0);
  return true;
}

bool TakeSglangCapacity(std::string_view said, EngineFacts& facts) {
  const auto tokens = NumberAfter(said, "max_total_num_tokens=");
  if (!tokens) return false;
  facts.kv_tokens.Add(*tokens);
  return true;
}

bool TakeTrtllmCapacity(std::string_view said, EngineFacts& facts) {
  const uint32_t size = SizeAfter(said, "tokens per block=");
  const auto blocks = NumberAfter(said, "primary blocks=");
  if (size == 0) return false;
  facts.tokens_per_block.Add(size);
  constexpr uint64_t kLargest = uint64_t{1} << 40;
  if (blocks && *blocks < kLargest) facts.kv_tokens.Add(*blocks * size);
  return true;
}

}  // namespace

bool TakeEngineLine(LogKind kind, std::string_view said, EngineFacts& facts) {
  switch (kind) {
    case LogKind::kVllmCapacity:
      return TakeVllmCapacity(said, facts);
    case LogKind::kVllmConcurrency:
      return TakeConcurrency(said, facts);
    case LogKind::kVllmStatus:
      return TakeVllmStatus(said, facts);
    case LogKind::kVllmPreemption:
      if (said.find(" is preempted by PreemptionMode") == std::string_view::npos) return false;
      ++facts.preemptions;
      return true;
    case LogKind::kSglangCapacity:
      return TakeSglangCapacity(said, facts);
    case LogKind::kSglangPrefill:
    case LogKind::kSglangDecode:
      return TakeSglangBatch(kind, said, facts);
    case LogKind::kSglangRetraction:
      facts.preemptions += NumberAfter(said, "#retracted_reqs: ").value_or(1);
      return true;
    case LogKind::kTrtllmCapacity:
      return TakeTrtllmCapacity(said, facts);
    default:
      return false;
  }
}

}  // namespace fathom
