#include "fleet/feed_board.h"

#include <ranges>
#include <utility>

namespace fathom {
namespace {

constexpr double kLags[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                            0.5,   1,      2,     5,    10,    30,   60};

}  // namespace

std::string_view Name(FeedReach reach) {
  switch (reach) {
    case FeedReach::kUnknown:
      return "unknown";
    case FeedReach::kOpen:
      return "open";
    case FeedReach::kRefused:
      return "refused";
    case FeedReach::kTimeout:
      return "timeout";
    case FeedReach::kUnresolved:
      return "unresolved";
  }
  std::unreachable();
}

FeedBoard::FeedBoard() : lag_by_timestamp(kLags), lag_after_first_byte(kLags) {}

std::shared_ptr<FeedStatus> FeedBoard::Open(WorkerId worker, uint32_t dp_rank, std::string source) {
  auto status = std::make_shared<FeedStatus>(worker, dp_rank, std::move(source));
  const std::lock_guard lock(mutex_);
  std::erase_if(feeds_, [](const auto& feed) { return feed.expired(); });
  feeds_.push_back(status);
  return status;
}

std::vector<std::shared_ptr<const FeedStatus>> FeedBoard::All() const {
  std::map<std::pair<WorkerId, uint32_t>, std::shared_ptr<const FeedStatus>> by_rank;
  const std::lock_guard lock(mutex_);
  for (const auto& feed : feeds_) {
    auto status = feed.lock();
    if (status == nullptr) continue;
    const uint32_t dp_rank = status->dp_rank.load(std::memory_order_relaxed);
    by_rank[{status->worker, dp_rank}] = std::move(status);
  }
  const auto feeds = by_rank | std::views::values;
  return {feeds.begin(), feeds.end()};
}

void FeedBoard::SetProblem(WorkerId worker, Problem problem) {
  const std::lock_guard lock(mutex_);
  if (problem.kind == NoFeed::kNone) {
    problems_.erase(worker);
  } else {
    problems_[worker] = std::move(problem);
  }
}

FeedBoard::Problem FeedBoard::ProblemOf(WorkerId worker) const {
  const std::lock_guard lock(mutex_);
  const auto found = problems_.find(worker);
  return found == problems_.end() ? Problem{} : found->second;
}

}  // namespace fathom
