#include "router/index/epochs.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace fathom {

Epochs::~Epochs() {
  for (Retired& retired : retired_) retired.free();
}

Epochs::Place& Epochs::Take() {
  for (size_t i = 0; i < kSeats; ++i) {
    bool free = false;
    if (places_[i].taken.compare_exchange_strong(free, true, std::memory_order_acquire)) {
      size_t used = used_.load(std::memory_order_relaxed);
      while (used <= i && !used_.compare_exchange_weak(used, i + 1, std::memory_order_seq_cst)) {
      }
      return places_[i];
    }
  }
  const bool seat_found = false;
  CHECK(seat_found);  // more than kSeats seats at once
  return places_[0];
}

uint64_t Epochs::OldestPin() const {
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  const size_t used = used_.load(std::memory_order_seq_cst);
  for (size_t i = 0; i < used; ++i) {
    const uint64_t pinned = places_[i].pinned.load(std::memory_order_seq_cst);
    if (pinned != 0) oldest = std::min(oldest, pinned);
  }
  return oldest;
}

void Epochs::Retire(std::move_only_function<void()> free) {
  {
    const std::lock_guard lock(mutex_);
    const uint64_t epoch = now_.fetch_add(1, std::memory_order_seq_cst);
    retired_.push_back({epoch, std::move(free)});
  }
  Collect();
}

void Epochs::Collect() {
  std::vector<Retired> ripe;
  {
    const std::lock_guard lock(mutex_);
    if (retired_.empty()) return;
    const uint64_t oldest = OldestPin();
    const auto young = std::ranges::find_if(
        retired_, [oldest](const Retired& retired) { return retired.epoch >= oldest; });
    ripe.assign(std::move_iterator(retired_.begin()), std::move_iterator(young));
    retired_.erase(retired_.begin(), young);
  }
  for (Retired& retired : ripe) retired.free();
}

}  // namespace fathom
