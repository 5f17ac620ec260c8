// The gateway's metrics. The hot path raises them through references, without a lookup.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "metrics/registry.h"
#include "router/fleet/fleet.h"
#include "router/gateway/search_result.h"
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
  kGenerate,           // SGLang's
  kInferenceGenerate,  // vLLM's, of token ids
  kRerank,
  kScore,
  kOther,
  kWorkerReady,  // whether one worker is admitted: 503 says nothing about the router
  kOwn
};
constexpr size_t kRoutes = 13;
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

// What became of a session hint.
enum class HintResult : uint8_t {
  kDecided,     // its rank was chosen because of it
  kAgreed,      // its rank would have been chosen without it, too
  kOutweighed,  // another rank was better
  kUnknown,     // it was the first of its session, or its rank cannot be chosen
};
constexpr size_t kHintResults = 4;

class GatewayMetrics {
 public:
  explicit GatewayMetrics(Registry& registry);

  void CountRequest(Route route, int status);
  Counter& Retries(RetryReason reason) { return *retries_[static_cast<size_t>(reason)]; }
  Counter& Searches(SearchResult::Kind kind) { return *searches_[static_cast<size_t>(kind)]; }

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
  // The same of a prompt whose tokens are not known: nothing was predicted.
  void CountBlind(uint64_t prompt_tokens, const Waste& waste);
  Counter& Hints(HintKind kind, HintResult result) {
    return *hints_[static_cast<size_t>(kind)][static_cast<size_t>(result)];
  }
  // A request whose kind has no prompt that can be cached.
  void CountWithoutPrompt(Route route) {
    by_no_prompt_.Add();
    without_prompt_[static_cast<size_t>(route)]->Add();
  }
  // Counts what the text of a prompt let expect, and what the engine found, in tokens.
  void CountText(uint64_t assumed, uint64_t found) {
    text_assumed_.Add(assumed);
    text_found_.Add(found);
  }
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
  void CountWaste(const Waste& waste);

  static constexpr size_t kStatuses = 600;

  Registry& registry_;
  // Filled on first use of a pair; afterwards a request costs one load and one add.
  std::array<std::array<std::atomic<Counter*>, kStatuses>, kRoutes> requests_{};
  std::array<Counter*, kRetryReasons> retries_{};
  std::array<Counter*, kSearchResults> searches_{};
  std::array<std::array<Counter*, kHintResults>, kHintKinds> hints_{};
  Counter& by_cache_;
  Counter& by_belief_;
  Counter& by_text_;
  Counter& by_load_;
  Counter& without_tokens_;
  Counter& by_no_prompt_;
  std::array<Counter*, kRoutes> without_prompt_{};  // null for kinds that have one
  Counter& prompt_tokens_;
  Counter& cached_tokens_;
  Counter& text_assumed_;
  Counter& text_found_;
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
