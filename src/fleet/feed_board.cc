#include "fleet/feed_board.h"

#include <algorithm>
#include <tuple>

namespace fathom {

std::shared_ptr<FeedStatus> FeedBoard::Open(WorkerId worker, uint32_t dp_rank, std::string source) {
  auto status = std::make_shared<FeedStatus>(worker, dp_rank, std::move(source));
  const std::lock_guard lock(mutex_);
  std::erase_if(feeds_, [](const auto& feed) { return feed.expired(); });
  feeds_.push_back(status);
  return status;
}

std::vector<std::shared_ptr<const FeedStatus>> FeedBoard::All() const {
  std::vector<std::shared_ptr<const FeedStatus>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& feed : feeds_) {
      if (auto status = feed.lock()) all.push_back(std::move(status));
    }
  }
  std::ranges::sort(all, {}, [](const auto& feed) {
    return std::tuple(feed->worker, feed->dp_rank.load(std::memory_order_relaxed));
  });
  return all;
}

}  // namespace fathom
