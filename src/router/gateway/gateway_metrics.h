// The gateway's metrics. The hot path raises them through references, without a lookup.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "metrics/registry.h"
#include "router/fleet/fleet.h"
#include "router/routing/steering.h"

namespace fathom {

// Kinds of request, as a label: a bounded set.
enum class Route : uint8_t {
  kChat,
  kCompletions,
  kEmbeddings,
  kResponses,
  kMessages,
  kCountTokens,
  kOther,
  kOwn
};
constexpr size_t kRoutes = 8;
std::string_view Name(Route route);
// Whether requests of this kind have a prompt whose prefix can be cached.
bool HasPrompt(Route route);

enum class RetryReason : uint8_t {
  kConnect,
  kBroken,
  kTimeout,
  kStatus,
  kBusy,
  kAborted,
  kGone,
  kQuestion,  // the worker may have refused the request because of our usage question
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

  // Counts a choice by prompt. A retry is one more decision, but its prompt was counted before.
  void Count(const Decision& decision, const Steering::Stages& stages, bool first);
  // Counts an outcome: predicted cached tokens, and those that the engine reported.
  void CountOutcome(uint32_t predicted, std::optional<uint32_t> found, const Waste& waste);
  Counter& without_prompt;
  Counter& forwarded_as_tokens;
  Counter& not_literal;
  Counter& queued;
  Counter& queue_timeouts;
  Histogram& queue_wait;
  Counter& replays_awaited;
  Counter& replays_missed;
  Counter& usage_asked;
  Counter& usage_seen;

 private:
  static constexpr size_t kStatuses = 600;

  Registry& registry_;
  // Filled on first use of a pair; afterwards a request costs one load and one add.
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

// Adds the numbers of every worker that is in the fleet now.
void CollectWorkerMetrics(const FleetSnapshot& fleet, Exposition& out);
// What each worker is. Engines may have any number of adapters: those are listed as long as there
// are fewer than Registry::kMaxLabelSets series.
void CollectWorkerInfo(const FleetSnapshot& fleet, bool with_urls, Exposition& out);
// The load on every rank, and the other inputs of choices.
void CollectRoutingMetrics(const FleetSnapshot& fleet, SteeringWorld& steering, size_t waiting,
                           TimePoint now, Exposition& out);

}  // namespace fathom
