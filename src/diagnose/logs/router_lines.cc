#include "diagnose/logs/router_lines.h"

#include <algorithm>

namespace fathom {
namespace {

constexpr size_t kMaxId = 64;
constexpr size_t kMaxSubject = 200;

LoggedWork& WorkOf(std::string id, const LogLine& line, LogFacts& facts) {
  constexpr uint64_t kMaxRank = 1 << 20;
  const auto rank = line.Number("dp_rank").value_or(0);
  LoggedRank key(std::move(id), static_cast<uint32_t>(std::min(rank, kMaxRank)));
  if (facts.ranks.size() >= kMaxLogRanks && !facts.ranks.contains(key)) key = {"others", 0};
  return facts.ranks[std::move(key)];
}

// "Selected worker: 1718573674787700186, logit: ...", before workers had ranks.
std::string BareId(std::string_view said) {
  const size_t colon = said.find(": ");
  if (colon == std::string_view::npos) return {};
  said.remove_prefix(colon + 2);
  const size_t digits = std::min(said.find_first_not_of("0123456789"), said.size());
  return digits <= kMaxId ? std::string(said.substr(0, digits)) : std::string();
}

bool TakeSelection(std::string_view said, const LogLine& line, LogFacts& facts) {
  std::string id = line.Text("worker_id", kMaxId);
  if (id.empty()) id = BareId(said);
  auto cached = RealAfter(said, "cached blocks: ");
  if (!cached) cached = line.Real("effective_cached_blocks");
  if (id.empty() && !cached) return false;
  facts.selections.Add(cached, NumberAfter(said, "tree size: "));
  if (id.empty()) return true;
  LoggedWork& work = WorkOf(std::move(id), line, facts);
  ++work.selections;
  if (cached && *cached == 0) ++work.none_cached;
  work.cached_blocks += cached.value_or(0);
  return true;
}

bool TakeRefusal(const LogLine& line, LogFacts& facts) {
  std::string id = line.Text("worker_id", kMaxId);
  if (!id.empty()) ++WorkOf(std::move(id), line, facts).events_refused;
  return true;
}

uint32_t SizeOf(const LogLine& line, std::string_view key) {
  constexpr uint64_t kLargest = 1 << 20;
  const uint64_t size = line.Number(key).value_or(0);
  return size <= kLargest ? static_cast<uint32_t>(size) : 0;
}

// Of the first key that the line has.
uint32_t SizeOfAny(const LogLine& line, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const uint32_t size = SizeOf(line, key); size != 0) return size;
  }
  return 0;
}

std::string ModelOf(const LogLine& line) {
  std::string model = line.Text("model", kMaxSubject);
  return model.empty() ? line.Text("model_name", kMaxSubject) : model;
}

bool TakeClash(SizeClash clash, LogFacts& facts) {
  Count(std::move(clash), facts);
  return true;
}

bool TakeMismatch(LogKind kind, const LogLine& line, LogFacts& facts) {
  return TakeClash(
      {.kind = kind,
       .router = SizeOfAny(line, {"existing_block_size", "existing", "expected_block_size"}),
       .worker = SizeOfAny(line, {"requested_block_size", "requested", "received_block_size"}),
       .subject = ModelOf(line)},
      facts);
}

}  // namespace

void Count(SizeClash clash, LogFacts& facts) {
  if (facts.clashes.size() >= kMaxClashes && !facts.clashes.contains(clash)) return;
  ++facts.clashes[std::move(clash)];
}

bool TakeRouterLine(LogKind kind, std::string_view said, const LogLine& line, LogFacts& facts) {
  switch (kind) {
    case LogKind::kSelection:
      return TakeSelection(said, line, facts);
    case LogKind::kRouteCompleted:
      facts.completions.Add(line.Real("overlap_blocks"), std::nullopt);
      return true;
    case LogKind::kParentMissing:
    case LogKind::kRemoveMissing:
    case LogKind::kStaleParent:
      return TakeRefusal(line, facts);
    case LogKind::kBlockNotPublished:
      return TakeClash({.kind = kind,
                        .router = SizeAfter(said, "Block size must be "),
                        .worker = SizeAfter(said, "Block size is: ")},
                       facts);
    case LogKind::kBlockTooLong:
      if (said.find("greater than kv_block_size") == std::string_view::npos) return false;
      return TakeClash({.kind = kind,
                        .router = SizeAfter(said, "kv_block_size "),
                        .worker = SizeAfter(said, "Block contains "),
                        .at_least = true},
                       facts);
    case LogKind::kRouterMismatch:
    case LogKind::kServiceMismatch:
    case LogKind::kReplicaDropped:
      return TakeMismatch(kind, line, facts);
    default:
      return true;  // that it was said is all there is to know
  }
}

}  // namespace fathom
