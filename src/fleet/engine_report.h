// What does an engine say of itself: how large is its cache, how much does it run at once, how busy
// is it?
//
// Everything is hearsay and may be missing: 0 (or nothing) means that the engine has not said.
//
// Threads    WorkerReport: published by the control loop, read and suspected by any.
// Memory     At most EngineReport::kMaxRanks loads per worker.
// Staleness  As old as the last answer; a question without an answer changes nothing but the age.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "metrics/exposition.h"

namespace fathom {

enum class EngineKind : uint8_t { kUnknown, kVllm, kSglang, kTrtllm };
std::string_view Name(EngineKind engine);

// How busy one rank is, all its clients together.
struct RankLoadReport {
  uint32_t rank = 0;
  uint32_t running = 0;    // sequences
  uint32_t waiting = 0;    // sequences in the engine's own queue
  double cache_usage = 0;  // 0 to 1, of what running sequences hold; reusable blocks count as free
  uint64_t preemptions = 0;  // since the engine started

  bool operator==(const RankLoadReport&) const = default;
};

struct EngineReport {
  static constexpr uint32_t kMaxRanks = 1024;

  EngineKind engine = EngineKind::kUnknown;
  uint32_t ranks = 0;
  uint32_t block_size = 0;        // tokens that one rank keeps in a block
  uint64_t num_blocks = 0;        // of one rank's cache
  uint32_t context_parallel = 0;  // ranks that share each block of a context; at most kMaxRanks
  uint64_t kv_tokens = 0;         // that one rank's cache holds
  uint32_t max_running = 0;       // sequences that one rank runs at once
  uint32_t batch_tokens = 0;      // that one step of a rank computes at most
  std::optional<bool> prefix_caching;
  uint64_t context_length = 0;        // tokens
  std::vector<RankLoadReport> loads;  // by rank, each at most once

  // What its events should say: a block that is shared has the tokens of all who share it.
  uint32_t event_block_size() const { return block_size * std::max(1u, context_parallel); }

  // Over all ranks: requests added up, the mean of the usage. Nothing if no rank has said.
  std::optional<RankLoadReport> TotalLoad() const;

  bool operator==(const EngineReport&) const = default;
};

// The load of each rank, for /metrics. `worker` is the worker's id.
void CollectLoads(const EngineReport& report, std::string_view worker, Exposition& out);

// The latest report of one worker.
class WorkerReport {
 public:
  void Publish(EngineReport report, TimePoint now);
  // Whoever said it is gone, and its successor says nothing: as before the first.
  void Forget();

  // Null before the first.
  std::shared_ptr<const EngineReport> Current() const;
  // When it was published last; nothing before the first.
  std::optional<TimePoint> published() const;

  // Whoever answers now may be another process than the one that said all this: it should be asked
  // again soon.
  void Suspect() { suspected_.store(true, std::memory_order_relaxed); }
  // Whether that has been said since this was asked last.
  bool TakeSuspicion() { return suspected_.exchange(false, std::memory_order_relaxed); }

  // For the request path: no locks, each number by itself.
  EngineKind engine() const { return engine_.load(std::memory_order_relaxed); }
  uint64_t kv_tokens() const { return kv_tokens_.load(std::memory_order_relaxed); }
  uint32_t max_running() const { return max_running_.load(std::memory_order_relaxed); }
  uint32_t event_block_size() const { return block_size_.load(std::memory_order_relaxed); }
  uint32_t batch_tokens() const { return batch_tokens_.load(std::memory_order_relaxed); }
  std::optional<bool> prefix_caching() const;

 private:
  void CopyForRequests(const EngineReport& report);

  mutable std::mutex mutex_;
  std::shared_ptr<const EngineReport> current_;  // guarded by mutex_
  TimePoint published_;                          // guarded by mutex_

  std::atomic<bool> suspected_{false};  // orders nothing: what is asked then is asked anew

  // Copies that order nothing else.
  std::atomic<EngineKind> engine_{EngineKind::kUnknown};
  std::atomic<uint64_t> kv_tokens_{0};
  std::atomic<uint32_t> max_running_{0};
  std::atomic<uint32_t> block_size_{0};
  std::atomic<uint32_t> batch_tokens_{0};
  std::atomic<int8_t> prefix_caching_{-1};  // -1: not known
};

}  // namespace fathom
