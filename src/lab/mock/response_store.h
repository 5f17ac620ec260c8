// What was asked and answered by /v1/responses, for those who go on from there.
//
// Memory   At most kMost responses; the oldest are forgotten.
// Threads  Any.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fathom {

class ResponseStore {
 public:
  static constexpr size_t kMost = 1024;

  struct Entry {
    std::string items;  // of the conversation so far: JSON, separated by commas
    std::string page;   // the response itself
  };

  void Put(const std::string& id, Entry entry) {
    const std::lock_guard lock(mutex_);
    if (!entries_.contains(id)) order_.push_back(id);
    entries_[id] = std::move(entry);
    if (order_.size() <= kMost) return;
    entries_.erase(order_.front());
    order_.pop_front();
  }
  bool Remove(std::string_view id) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return false;
    entries_.erase(found);
    std::erase(order_, id);
    return true;
  }
  std::optional<Entry> Find(std::string_view id) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    return found == entries_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;  // guarded by mutex_
  std::deque<std::string> order_;                      // guarded by mutex_
};

}  // namespace fathom
