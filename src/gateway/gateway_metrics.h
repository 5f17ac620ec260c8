// What the gateway counts. Raised on the hot path through references, never looked up there.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "fleet/fleet.h"
#include "metrics/registry.h"
#include "routing/steering.h"

namespace fathom {

// Kinds of request, as a label: a bounded set.
enum class Route : uint8_t { kChat, kCompletions, kEmbeddings, kResponses, kOther, kOwn };
constexpr size_t kRoutes = 6;
std::string_view Name(Route route);

enum class RetryReason : uint8_t {
  kConnect,
  kBroken,
  kTimeout,
  kStatus,
  kBusy,
  kAborted,
  kGone,
  kQuestion,  // it may not know what we asked it
};
constexpr size_t kRetryReasons = 8;
std::string_view Name(RetryReason reason);

class GatewayMetrics {
 public:
  explicit GatewayMetrics(Registry& registry);

  void CountRequest(Route route, int status);
  Counter& Retries(RetryReason reason) { return *retries_[static_cast<size_t>(reason)]; }

  Histogram& time_to_first_token;
  Histogram& inter_token_latency;
  Histogram& duration;
  Gauge& in_flight;
  Counter& bytes_from_clients;
  Counter& bytes_to_clients;
  Counter& rejected_full;
  Counter& rejected_draining;
  Counter& client_left;
  Counter& broken_answers;
  Counter& retries_denied;

  // About choices by prompt.
  // A retry's decision is one more, but its prompt was counted before.
  void Count(const Decision& decision, const Steering::Stages& stages, bool first);
  // What became of one: what was predicted, and what the engine says it found.
  void CountOutcome(uint32_t predicted, std::optional<uint32_t> found, const Waste& waste);
  Counter& without_prompt;
  Counter& forwarded_as_tokens;
  Counter& not_literal;
  Counter& queued;
  Counter& queue_timeouts;
  Histogram& queue_wait;
  Counter& usage_asked;
  Counter& usage_seen;

 private:
  static constexpr size_t kStatuses = 600;

  Registry& registry_;
  // Filled on first use of a pair; after that a request costs one load and one add.
  std::array<std::array<std::atomic<Counter*>, kStatuses>, kRoutes> requests_{};
  std::array<Counter*, kRetryReasons> retries_{};
  Counter& by_cache_;
  Counter& by_belief_;
  Counter& by_load_;
  Counter& without_tokens_;
  Counter& prompt_tokens_;
  Counter& cached_tokens_;
  Counter& predicted_;
  Counter& actual_;
  Histogram& over_;
  Histogram& under_;
  std::array<Counter*, kWasteCauses> wasted_{};
  Histogram& hashing_;
  Histogram& lookup_;
  Histogram& choosing_;
};

// Adds the numbers of every worker now in the fleet.
void CollectWorkerMetrics(const FleetSnapshot& fleet, Exposition& out);
// What lies on every rank, and what else the choices are made of.
void CollectRoutingMetrics(const FleetSnapshot& fleet, SteeringWorld& steering, size_t waiting,
                           TimePoint now, Exposition& out);

}  // namespace fathom
