#include "diagnose/logs/log_phrases.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace fathom {
namespace {

struct Entry {
  LogKind kind;
  std::string_view text;
  std::string_view name{};  // empty: the text
};

// In the order of LogKind; the first of a kind is its name. Words that stand in the lines exactly
// so, at least four bytes long, without quotes and backslashes: in JSON they look the same.
constexpr auto kEntries = std::to_array<Entry>({
    {LogKind::kSelection, "Selected worker"},
    {LogKind::kSelection, "Selected pinned worker"},
    {LogKind::kRouteCompleted, "route request completed"},
    {LogKind::kParentMissing, "Failed to find parent block"},
    {LogKind::kRemoveMissing, "Failed to find block to remove"},
    {LogKind::kApplyFailed, "Failed to apply event"},
    {LogKind::kStaleParent, "Stale parent: worker no longer covers"},
    {LogKind::kBlockNotPublished, "Block not published"},
    {LogKind::kBlockTooLong, "Block contains "},
    {LogKind::kRouterMismatch, "KV Router block size mismatch"},
    {LogKind::kServiceMismatch, "block_size mismatch for model="},
    {LogKind::kServiceMismatch, "Block size mismatch for existing indexer"},
    {LogKind::kReplicaDropped, "Dropping selector replica event with mismatched block size"},
    {LogKind::kReplicaDropped, "Dropping replica event with mismatched block size"},
    {LogKind::kSourceIgnored, "Ignoring incompatible V2 KV state source advertisement"},
    {LogKind::kWorkersRejected, "Rejected incompatible workers"},
    {LogKind::kNoReplay, "No replay endpoint configured; batches lost"},
    {LogKind::kPublisherDisabled, "kv_event_publisher_disabled"},
    {LogKind::kSourceNotObserved, "kv_event_source_not_observed"},
    {LogKind::kSourceAmbiguous, "kv_event_source_ambiguous"},
    {LogKind::kSourceRecovered, "kv_event_source_recovered"},
    {LogKind::kGroupsUnknown, "Failed to fetch KV cache group metadata"},
    {LogKind::kPrefillRouter, "Activating prefill router"},
    {LogKind::kSizeAgreed, "Auto-configured KV block size to"},
    {LogKind::kSizeMismatch, "Frontend KV block size ("},
    {LogKind::kReportDiffers, "Worker reports KV block size"},
    {LogKind::kOddRank, "KV events of a rank have blocks of"},
    {LogKind::kStaleReport, "KV events have blocks of"},
    {LogKind::kSizeConflict, "Workers disagree about the KV block size"},
    {LogKind::kWorkerRefused, "Worker is not admitted: its KV block size"},
    {LogKind::kRankTrusted, "KV events of a rank are trusted"},
    {LogKind::kRankDoubted, "A rank is doubted: "},
    {LogKind::kRankAgain, "A rank is trusted again"},
    {LogKind::kRankAgain, "A rank is learning again"},
    {LogKind::kRankUnsteady, "A rank was doubted repeatedly"},
    {LogKind::kRankUnsteady, "A rank was doubted again and again"},  // older releases
    {LogKind::kEventsLost, "KV events were lost"},
    {LogKind::kNoFeed, "No KV events from a worker"},
    {LogKind::kUnhealthy, "Worker is not healthy"},
    {LogKind::kHealthy, "Worker is healthy"},
    {LogKind::kFollowing, "Following KV events"},
    {LogKind::kPromptsUnread, "Prompts are routed without their prefix"},
    {LogKind::kPromptsRead, "Prompts are read again"},
    {LogKind::kRemoved, "Worker removed"},
    {LogKind::kVllmCapacity, "GPU KV cache size: "},
    {LogKind::kVllmConcurrency, "Maximum concurrency for "},
    {LogKind::kVllmStatus, "Avg prompt throughput: "},
    {LogKind::kVllmPreemption, "Sequence group ", "Sequence group is preempted"},
    {LogKind::kSglangCapacity, "max_total_num_tokens="},
    {LogKind::kSglangPrefill, "Prefill batch"},
    {LogKind::kSglangDecode, "Decode batch"},
    {LogKind::kSglangRetraction, "KV cache pool is full"},
    {LogKind::kSglangRetraction, "Decode out of memory happened"},
    {LogKind::kTrtllmCapacity, "Max KV cache blocks per sequence: "},
});

static_assert(std::ranges::is_sorted(kEntries, {}, &Entry::kind));
static_assert(static_cast<size_t>(kEntries.back().kind) + 1 == kLogKinds);

constexpr size_t kAnchor = 4;
constexpr size_t kSlots = 1 << 14;

constexpr uint32_t SlotOf(uint32_t anchor) { return anchor * 2654435761U >> 18; }

constexpr uint32_t AnchorOf(std::string_view text) {
  uint32_t anchor = 0;
  for (size_t i = 0; i < kAnchor; ++i) {
    anchor |= static_cast<uint32_t>(static_cast<unsigned char>(text[i])) << (8 * i);
  }
  return anchor;
}

// Slots of the first four bytes of each phrase.
constexpr auto kMayBegin = [] {
  std::array<bool, kSlots> slots{};
  for (const Entry& entry : kEntries) slots[SlotOf(AnchorOf(entry.text))] = true;
  return slots;
}();

uint32_t AnchorAt(const char* at) {
  if constexpr (std::endian::native != std::endian::little) return AnchorOf({at, kAnchor});
  uint32_t anchor = 0;
  std::memcpy(&anchor, at, kAnchor);
  return anchor;
}

}  // namespace

std::optional<Phrase> FindPhrase(std::string_view text) {
  if (text.size() < kAnchor) return std::nullopt;
  const size_t end = text.size() - kAnchor + 1;
  for (size_t at = 0; at < end; ++at) {
    if (!kMayBegin[SlotOf(AnchorAt(text.data() + at))]) continue;
    if (const auto kind = PhraseAt(text.substr(at))) return Phrase{*kind, at};
  }
  return std::nullopt;
}

std::optional<LogKind> PhraseAt(std::string_view text) {
  for (const Entry& entry : kEntries) {
    if (text.starts_with(entry.text)) return entry.kind;
  }
  return std::nullopt;
}

std::string_view Name(LogKind kind) {
  const auto entry = std::ranges::find(kEntries, kind, &Entry::kind);
  std::string_view name = entry->name.empty() ? entry->text : entry->name;
  while (name.ends_with(' ') || name.ends_with(':') || name.ends_with('=') || name.ends_with('(')) {
    name.remove_suffix(1);
  }
  return name;
}

}  // namespace fathom
