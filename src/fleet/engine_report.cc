#include "fleet/engine_report.h"

#include <limits>
#include <string>
#include <utility>

#include "metrics/catalogue.h"

namespace fathom {
namespace {

uint32_t AddUpTo32Bits(uint32_t a, uint32_t b) {
  return a > std::numeric_limits<uint32_t>::max() - b ? std::numeric_limits<uint32_t>::max()
                                                      : a + b;
}

}  // namespace

std::string_view Name(EngineKind engine) {
  switch (engine) {
    case EngineKind::kUnknown:
      return "unknown";
    case EngineKind::kVllm:
      return "vllm";
    case EngineKind::kSglang:
      return "sglang";
    case EngineKind::kTrtllm:
      return "trtllm";
  }
  std::unreachable();
}

std::optional<RankLoadReport> EngineReport::TotalLoad() const {
  if (loads.empty()) return std::nullopt;
  RankLoadReport total;
  for (const RankLoadReport& load : loads) {
    total.running = AddUpTo32Bits(total.running, load.running);
    total.waiting = AddUpTo32Bits(total.waiting, load.waiting);
    total.cache_usage += load.cache_usage;
  }
  total.cache_usage /= static_cast<double>(loads.size());
  return total;
}

void CollectLoads(const EngineReport& report, std::string_view worker, Exposition& out) {
  for (const RankLoadReport& load : report.loads) {
    const Labels labels = {{"worker", std::string(worker)}, {"dp_rank", std::to_string(load.rank)}};
    out.Add(Metric("kv_router_engine_running"), labels, load.running);
    out.Add(Metric("kv_router_engine_waiting"), labels, load.waiting);
    out.Add(Metric("kv_router_engine_cache_usage"), labels, load.cache_usage);
  }
}

void WorkerReport::CopyForRequests(const EngineReport& report) {
  engine_.store(report.engine, std::memory_order_relaxed);
  kv_tokens_.store(report.kv_tokens, std::memory_order_relaxed);
  max_running_.store(report.max_running, std::memory_order_relaxed);
  batch_tokens_.store(report.batch_tokens, std::memory_order_relaxed);
  block_size_.store(report.event_block_size(), std::memory_order_relaxed);
  const int8_t caching = report.prefix_caching ? static_cast<int8_t>(*report.prefix_caching) : -1;
  prefix_caching_.store(caching, std::memory_order_relaxed);
}

void WorkerReport::Publish(EngineReport report, TimePoint now) {
  CopyForRequests(report);
  auto next = std::make_shared<const EngineReport>(std::move(report));
  const std::lock_guard lock(mutex_);
  current_ = std::move(next);
  published_ = now;
}

void WorkerReport::Forget() {
  CopyForRequests({});
  const std::lock_guard lock(mutex_);
  current_ = nullptr;
}

std::shared_ptr<const EngineReport> WorkerReport::Current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::optional<TimePoint> WorkerReport::published() const {
  const std::lock_guard lock(mutex_);
  return current_ == nullptr ? std::nullopt : std::optional(published_);
}

std::optional<bool> WorkerReport::prefix_caching() const {
  const int8_t value = prefix_caching_.load(std::memory_order_relaxed);
  return value < 0 ? std::nullopt : std::optional(value != 0);
}

}  // namespace fathom
