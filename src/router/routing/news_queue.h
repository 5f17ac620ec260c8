// What has changed since somebody last asked, as far as somebody listens?
//
// Threads  Any; a mutex, if somebody listens.
// Memory   At most kMost; the oldest is dropped.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace fathom {

template <class News>
class NewsQueue {
 public:
  static constexpr size_t kMost = 1 << 16;

  void Listen() { listened_.store(true, std::memory_order_relaxed); }
  bool listened() const { return listened_.load(std::memory_order_relaxed); }

  void Add(News news) {
    if (!listened()) return;
    const std::lock_guard lock(mutex_);
    if (news_.size() >= kMost) news_.pop_front();
    news_.push_back(std::move(news));
  }
  // Appends the oldest ones.
  void Take(std::vector<News>& into, size_t most) {
    const std::lock_guard lock(mutex_);
    for (; most > 0 && !news_.empty(); --most) {
      into.push_back(std::move(news_.front()));
      news_.pop_front();
    }
  }

 private:
  std::atomic<bool> listened_{false};  // relaxed, pairs with nothing
  std::mutex mutex_;
  std::deque<News> news_;  // guarded by mutex_
};

}  // namespace fathom
