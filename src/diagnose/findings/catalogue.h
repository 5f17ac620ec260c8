// Which findings are there?
//
// One table: id, how grave, which part of an investigation it belongs to, a title. The id is also
// the name of the page in docs/runbooks/. Order is depth: what explains more comes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fathom {

enum class Severity : uint8_t {
  kError,    // cache-aware routing does not work, or not on that worker
  kWarning,  // it works less well than it could, or will fail one day
  kInfo,     // worth knowing
};
std::string_view Name(Severity severity);

// The parts of an investigation.
enum class Part : uint8_t { kConfiguration, kSync, kMemory };
std::string_view Name(Part part);

enum class FindingId : uint8_t {
  // The router and its workers do not agree.
  kBlockSizeMismatch,
  kBlockSizeConflict,
  kBlockSizeMissing,
  kWorkersRejected,
  kPrefixCachingOff,
  kPublisherOff,
  kEventBufferOff,
  kEndpointConnects,
  kPortCollision,
  kNoEvents,
  kKvEventsUnused,
  kRouterModeMissing,
  kServiceHidesPods,
  kTokensDiffer,
  kPromptsUnread,
  kUnsupportedGroups,
  kUnhealthy,
  kSourceStale,
  // It works, and loses something.
  kReplicaAlone,
  kReplicasDiffer,
  kEventGap,
  kEventLag,
  kPredictionDrift,
  kChurn,
  kModelDoesNotFit,
  kMemoryPressure,
  kMemoryFractionLow,
  kPreemptions,
  kPageSizeOne,
  kReplayMissing,
  kBlockSizeNote,
  // Symptoms, where nothing above explains them.
  kIndexEmpty,
  kEventsNotApplied,
  kFollowUpsSlow,
  kWastedPrefill,
};
constexpr size_t kFindingIds = 35;

struct FindingKind {
  FindingId id;
  std::string_view name;  // "block-size-mismatch"
  Severity severity;
  Part part;
  std::string_view title;      // "KV events do not arrive"
  std::string_view page = {};  // in docs/runbooks/, where it is not the name
};

// In the order of FindingId.
std::span<const FindingKind> Catalogue();
const FindingKind& KindOf(FindingId id);
std::string_view Name(FindingId id);
std::optional<FindingId> FindingNamed(std::string_view name);

// Below docs/: "runbooks/block-size-mismatch.md"
std::string PageOf(FindingId id);

}  // namespace fathom
