// What did this worker's engine report last?
//
// Threads    Published by the control loop; read and suspected by any thread.
// Memory     At most EngineReport::kMaxRanks loads per worker.
// Staleness  As old as the engine's last answer; a failed probe changes nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "engine/engine_report.h"
#include "metrics/exposition.h"
#include "router/fleet/fleet_pulse.h"

namespace fathom {

// The load of each rank, for /metrics. `worker` is the worker's id.
void CollectLoads(const EngineReport& report, std::string_view worker, Exposition& out);

// The latest report of one worker.
class WorkerReport {
 public:
  // `pulse`, which may be null, is raised when a value for the request path changes.
  explicit WorkerReport(std::shared_ptr<FleetPulse> pulse = nullptr) : pulse_(std::move(pulse)) {}

  void Publish(EngineReport report, TimePoint now);
  // The engine process is gone and its successor reports nothing: back to the initial state.
  void Forget();

  // Null before the first report.
  std::shared_ptr<const EngineReport> Current() const;
  // When the last report was published; nullopt before the first.
  std::optional<TimePoint> published() const;

  // The worker may be a different process than the one that reported: it should be probed again
  // soon.
  void Suspect() { suspected_.store(true, std::memory_order_relaxed); }
  // Whether Suspect() was called since the last TakeSuspicion().
  bool TakeSuspicion() { return suspected_.exchange(false, std::memory_order_relaxed); }

  // For the request path: no locks; each value is consistent only in itself.
  EngineKind engine() const { return engine_.load(std::memory_order_relaxed); }
  uint64_t kv_tokens() const { return kv_tokens_.load(std::memory_order_relaxed); }
  uint32_t max_running() const { return max_running_.load(std::memory_order_relaxed); }
  uint32_t event_block_size() const { return block_size_.load(std::memory_order_relaxed); }
  uint32_t batch_tokens() const { return batch_tokens_.load(std::memory_order_relaxed); }
  std::optional<bool> prefix_caching() const;

 private:
  void CopyForRequests(const EngineReport& report);

  const std::shared_ptr<FleetPulse> pulse_;
  mutable std::mutex mutex_;
  std::shared_ptr<const EngineReport> current_;  // guarded by mutex_
  TimePoint published_;                          // guarded by mutex_

  std::atomic<bool> suspected_{false};  // relaxed, pairs with nothing: triggers a new probe

  // Copies; relaxed, pair with nothing.
  std::atomic<EngineKind> engine_{EngineKind::kUnknown};
  std::atomic<uint64_t> kv_tokens_{0};
  std::atomic<uint32_t> max_running_{0};
  std::atomic<uint32_t> block_size_{0};
  std::atomic<uint32_t> batch_tokens_{0};
  std::atomic<int8_t> prefix_caching_{-1};  // -1: unknown
};

}  // namespace fathom
