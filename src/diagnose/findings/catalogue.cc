#include "diagnose/findings/catalogue.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace fathom {
namespace {

using enum FindingId;
using enum Severity;
using enum Part;

// clang-format off
constexpr std::array<FindingKind, kFindingIds> kKinds = {{
    {kBlockSizeMismatch, "block-size-mismatch", kError, kConfiguration, "Router and engine use different KV block sizes"},
    {kBlockSizeConflict, "block-size-conflict", kError, kConfiguration, "Workers of one model use different KV block sizes"},
    {kBlockSizeMissing, "block-size-missing", kError, kConfiguration, "The router uses a default block size that was never set"},
    {kWorkersRejected, "workers-rejected", kError, kConfiguration, "The router has rejected workers as incompatible"},
    {kPrefixCachingOff, "prefix-caching-off", kError, kConfiguration, "Prefix caching is off in the engine"},
    {kPublisherOff, "publisher-off", kError, kConfiguration, "The engine publishes no KV events"},
    {kEventBufferOff, "event-buffer-off", kError, kConfiguration, "The engine keeps no KV events for polling"},
    {kEndpointConnects, "endpoint-connects", kError, kConfiguration, "The event publisher connects instead of binding"},
    {kPortCollision, "port-collision", kError, kConfiguration, "Two sockets want the same port"},
    {kNoEvents, "no-events", kError, kSync, "KV events do not arrive"},
    {kKvEventsUnused, "kv-events-unused", kWarning, kConfiguration, "The router does not use KV events"},
    {kRouterModeMissing, "router-mode-missing", kError, kConfiguration, "The router does not route by KV cache"},
    {kServiceHidesPods, "service-hides-pods", kError, kConfiguration, "A Service stands between the router and the pods"},
    {kTokensDiffer, "tokens-differ", kError, kSync, "Router and engine see different tokens"},
    {kPromptsUnread, "prompts-unread", kError, kSync, "Prompts are routed without their prefix"},
    {kUnsupportedGroups, "unsupported-groups", kError, kSync, "The model has a kind of KV cache that the router does not support"},
    {kUnhealthy, "unhealthy", kError, kSync, "A worker gets no requests", "rank-excluded"},
    {kSourceStale, "source-stale", kError, kSync, "The router cannot see which workers there are"},
    {kReplicaAlone, "replica-alone", kWarning, kSync, "A router does not share with the others of its group"},
    {kReplicasDiffer, "replicas-differ", kWarning, kSync, "Routers of a group see different workers"},
    {kEventGap, "event-gap", kWarning, kSync, "KV events are lost"},
    {kEventLag, "event-lag", kWarning, kSync, "KV events arrive too late"},
    {kPredictionDrift, "prediction-drift", kWarning, kSync, "Engines find fewer cached tokens than their KV events report"},
    {kChurn, "churn", kWarning, kMemory, "Cached prefixes are evicted before they are requested again"},
    {kModelDoesNotFit, "model-does-not-fit", kError, kMemory, "Weights leave no memory for the KV cache"},
    {kMemoryPressure, "memory-pressure", kWarning, kMemory, "Running requests leave little memory for cached prefixes"},
    {kMemoryFractionLow, "memory-fraction-low", kWarning, kMemory, "GPU memory is left unused"},
    {kPreemptions, "preemptions", kWarning, kMemory, "Engines preempt requests because KV memory is short"},
    {kPageSizeOne, "page-size-one", kWarning, kConfiguration, "One KV event per token"},
    {kReplayMissing, "replay-missing", kWarning, kConfiguration, "Lost KV events cannot be replayed"},
    {kBlockSizeNote, "block-size-note", kWarning, kConfiguration, "A page sets a block size without what it must match"},
    {kIndexEmpty, "index-empty", kError, kSync, "Requests find no cached blocks in the router's index"},
    {kEventsNotApplied, "events-not-applied", kWarning, kSync, "The router cannot apply KV events"},
    {kFollowUpsSlow, "follow-ups-slow", kWarning, kSync, "Follow-up turns are no faster than first turns"},
    {kWastedPrefill, "wasted-prefill", kWarning, kSync, "Prompts are prefilled although a worker has them cached"},
}};
// clang-format on

}  // namespace

std::string_view Name(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kInfo:
      return "info";
  }
  CHECK(false);
}

std::string_view Name(Part part) {
  switch (part) {
    case Part::kConfiguration:
      return "configuration";
    case Part::kSync:
      return "sync";
    case Part::kMemory:
      return "memory";
  }
  CHECK(false);
}

std::span<const FindingKind> Catalogue() { return kKinds; }

const FindingKind& KindOf(FindingId id) { return kKinds[static_cast<size_t>(id)]; }

std::string_view Name(FindingId id) { return KindOf(id).name; }

std::optional<FindingId> FindingNamed(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &FindingKind::name);
  if (found == kKinds.end()) return std::nullopt;
  return found->id;
}

std::string PageOf(FindingId id) {
  const FindingKind& kind = KindOf(id);
  const std::string_view page = kind.page.empty() ? kind.name : kind.page;
  return std::string("runbooks/").append(page).append(".md");
}

}  // namespace fathom
