#include "router/fleet/worker_report.h"

#include <string>
#include <utility>

#include "metrics/catalogue.h"

namespace fathom {

void CollectLoads(const EngineReport& report, std::string_view worker, Exposition& out) {
  for (const RankLoadReport& load : report.loads) {
    const Labels labels = {{"worker", std::string(worker)}, {"dp_rank", std::to_string(load.rank)}};
    out.Add(Metric("kv_router_engine_running"), labels, load.running);
    out.Add(Metric("kv_router_engine_waiting"), labels, load.waiting);
    out.Add(Metric("kv_router_engine_cache_usage"), labels, load.cache_usage);
  }
}

void WorkerReport::CopyForRequests(const EngineReport& report) {
  // Lists of candidates depend on these two.
  const bool other_engine =
      engine_.exchange(report.engine, std::memory_order_relaxed) != report.engine;
  const bool other_size =
      kv_tokens_.exchange(report.kv_tokens, std::memory_order_relaxed) != report.kv_tokens;
  if (other_engine || other_size) FleetPulse::Raise(pulse_);
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
