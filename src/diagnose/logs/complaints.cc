#include "diagnose/logs/complaints.h"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace fathom {
namespace {

constexpr size_t kMaxName = 200;
constexpr uint64_t kMaxComplaintRank = 1 << 20;

bool IsComplaint(LogKind kind) {
  switch (kind) {
    case LogKind::kUnhealthy:
    case LogKind::kNoFeed:
    case LogKind::kEventsLost:
    case LogKind::kPublisherDisabled:
    case LogKind::kSourceNotObserved:
      return true;
    default:
      return false;
  }
}

// Fathom's lines have both, and its ids are new after a restart; Dynamo's have ids alone.
std::string WorkerIn(const LogLine& line) {
  std::string url = line.Text("url", kMaxName);
  return url.empty() ? line.Text("worker_id", kMaxName) : url;
}

std::optional<uint32_t> RankIn(const LogLine& line) {
  const auto rank = line.Number("dp_rank");
  if (!rank) return std::nullopt;
  return static_cast<uint32_t>(std::min(*rank, kMaxComplaintRank));
}

void StrikeOut(std::initializer_list<LogKind> kinds, const LogLine& line, LogFacts& facts) {
  if (facts.complaints.empty()) return;
  const std::string worker = WorkerIn(line);
  const auto rank = RankIn(line);
  std::erase_if(facts.complaints, [&](const auto& entry) {
    const Complaint& complaint = entry.first;
    return std::ranges::find(kinds, complaint.kind) != kinds.end() && complaint.worker == worker &&
           (!rank || !complaint.rank || *rank == *complaint.rank);
  });
}

// Dynamo finds cached only what a worker's events have told.
bool FoundSomething(LogKind kind, const LogLine& line) {
  const auto cached = kind == LogKind::kRouteCompleted ? line.Real("overlap_blocks")
                                                       : line.Real("effective_cached_blocks");
  const auto worded = RealAfter(line.message(), "cached blocks: ");
  return cached.value_or(worded.value_or(0)) > 0;
}

bool IsTrust(const LogLine& line) {
  return line.message().find("A rank is learning again") == std::string_view::npos;
}

}  // namespace

void Complain(LogKind kind, const LogLine& line, LogFacts& facts) {
  using enum LogKind;
  if (IsComplaint(kind)) {
    Complaint complaint{.kind = kind, .worker = WorkerIn(line), .rank = RankIn(line)};
    const bool room =
        facts.complaints.size() < kMaxComplaints || facts.complaints.contains(complaint);
    if (room) facts.complaints[std::move(complaint)] = facts.lines;
    return;
  }
  switch (kind) {
    case kHealthy:
      return StrikeOut({kUnhealthy}, line, facts);
    case kFollowing:
      return StrikeOut({kNoFeed}, line, facts);
    case kRankAgain:
      if (!IsTrust(line)) return;
      [[fallthrough]];
    case kRankTrusted:
    case kRemoved:
      return StrikeOut({kUnhealthy, kNoFeed, kEventsLost}, line, facts);
    case kSourceRecovered:
      return StrikeOut({kPublisherDisabled, kSourceNotObserved}, line, facts);
    case kSelection:
    case kRouteCompleted:
      if (facts.complaints.empty() || !FoundSomething(kind, line)) return;
      return StrikeOut({kPublisherDisabled, kSourceNotObserved}, line, facts);
    default:
      return;
  }
}

}  // namespace fathom
