#include "router/fleet/feed_board.h"

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
  if (--forget_in_ == 0) ForgetClosed();
  feeds_[worker].push_back(status);
  return status;
}

// The more are left, the more are opened until the next time: the cost of each one stays the same.
void FeedBoard::ForgetClosed() {
  forget_in_ = 1;
  for (auto& [worker, opened] : feeds_) {
    std::erase_if(opened, [](const auto& feed) { return feed.expired(); });
    forget_in_ += opened.size();
  }
  std::erase_if(feeds_, [](const auto& entry) { return entry.second.empty(); });
}

void FeedBoard::Append(const Opened& opened, Feeds& feeds) {
  std::map<uint32_t, std::shared_ptr<const FeedStatus>> by_rank;
  for (const auto& feed : opened) {
    auto status = feed.lock();
    if (status == nullptr) continue;
    const uint32_t dp_rank = status->dp_rank.load(std::memory_order_relaxed);
    by_rank[dp_rank] = std::move(status);
  }
  for (auto& [dp_rank, status] : by_rank) feeds.push_back(std::move(status));
}

FeedBoard::Feeds FeedBoard::All() const {
  Feeds all;
  const std::lock_guard lock(mutex_);
  for (const auto& [worker, opened] : feeds_) Append(opened, all);
  return all;
}

FeedBoard::Feeds FeedBoard::Of(WorkerId worker) const {
  Feeds feeds;
  const std::lock_guard lock(mutex_);
  const auto found = feeds_.find(worker);
  if (found != feeds_.end()) Append(found->second, feeds);
  return feeds;
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
