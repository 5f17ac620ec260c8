// What is the least load of these ranks, and how many of their requests wait?
//
// A few ranks of workers that serve the same models. Each rank reports its load whenever that
// changes; the block keeps the least of each number, so that a decision which finds even these too
// expensive need not look at the ranks. The numbers may be of different ranks; those of ranks with
// and without queued work are kept apart, because queued work costs far more than the rest.
//
// Threads  Any; a short lock for writers, none for readers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace fathom {

// The load of one rank, of all replicas, as far as it does not change with time alone.
struct LoadShare {
  // The least that it can become without a further event, and before a silent prefill ends.
  double backlog = 0;
  uint64_t context = 0;
  uint32_t requests = 0;
  uint32_t waiting = 0;
  bool silent = false;  // its oldest prefill ends without an event
  friend bool operator==(const LoadShare&, const LoadShare&) = default;
};

// The least of some ranks.
struct LoadFloor {
  double backlog = 0;
  uint64_t context = 0;
  uint32_t requests = 0;
  friend bool operator==(const LoadFloor&, const LoadFloor&) = default;
};

class LoadBlock {
 public:
  static constexpr size_t kMost = 32;

  // Returns the rank's place, or nullopt if the block is full.
  std::optional<size_t> Enter(const LoadShare& share);
  void Update(size_t place, const LoadShare& share);
  void Leave(size_t place);

  // Of the ranks whose backlog is 0; nullopt: there are none.
  std::optional<LoadFloor> Free() const { return Of(free_); }
  // Of the others.
  std::optional<LoadFloor> Queued() const { return Of(queued_); }
  // Sums over all ranks.
  uint64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  uint32_t silent() const { return silent_.load(std::memory_order_relaxed); }
  uint32_t ranks() const { return ranks_.load(std::memory_order_relaxed); }
  // How often a share has changed. What ranks published before is visible to the reader.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  // This router itself has placed something on the rank, or taken it off. Call it while readers of
  // the rank's numbers have to wait, so that none of them takes the bit and misses the change.
  void Touch(size_t place) {
    const uint64_t bit = uint64_t{1} << place;
    if ((touched_.load(std::memory_order_relaxed) & bit) != 0) return;
    touched_.fetch_or(bit, std::memory_order_release);
  }
  // The ranks that were touched since the last call, a bit per place.
  uint64_t TakeTouched() {
    if (touched_.load(std::memory_order_relaxed) == 0) return 0;
    return touched_.exchange(0, std::memory_order_acquire);
  }

 private:
  // Relaxed, pair with nothing; written with mutex_ held.
  struct Floor {
    std::atomic<double> backlog{0};
    std::atomic<uint64_t> context{0};
    std::atomic<uint32_t> requests{0};
    std::atomic<uint32_t> ranks{0};
  };
  static std::optional<LoadFloor> Of(const Floor& floor);

  // With mutex_ held.
  void Count(const LoadShare& share, int64_t times);
  void Include(const LoadShare& share);
  // The share is no longer in shares_.
  void Exclude(const LoadShare& share);
  Floor& FloorOf(const LoadShare& share) { return share.backlog > 0 ? queued_ : free_; }
  void Recount(Floor& floor, bool queued);

  std::mutex mutex_;
  uint64_t taken_ = 0;                   // guarded by mutex_; a bit per place
  std::array<LoadShare, kMost> shares_;  // guarded by mutex_
  Floor free_;
  Floor queued_;
  std::atomic<uint64_t> waiting_{0};
  std::atomic<uint32_t> silent_{0};
  std::atomic<uint32_t> ranks_{0};
  std::atomic<uint64_t> changes_{0};  // raised (release) with mutex_ held; pairs with changes()
  std::atomic<uint64_t> touched_{0};  // a bit per place; set (release), pairs with TakeTouched()
};

// Where a rank stands: a place in a block, from construction to destruction.
class LoadPlace {
 public:
  LoadPlace(std::shared_ptr<LoadBlock> block, size_t place)
      : block_(std::move(block)), place_(place) {}
  ~LoadPlace() { block_->Leave(place_); }
  LoadPlace(const LoadPlace&) = delete;
  LoadPlace& operator=(const LoadPlace&) = delete;

  void Update(const LoadShare& share) { block_->Update(place_, share); }
  void Touch() { block_->Touch(place_); }
  const std::shared_ptr<LoadBlock>& block() const { return block_; }
  size_t place() const { return place_; }

 private:
  const std::shared_ptr<LoadBlock> block_;
  const size_t place_;
};

// The blocks of a fleet. Ranks of the same group, which serve the same models, share blocks.
//
// Threads  Any; a lock.
class LoadBoard {
 public:
  std::unique_ptr<LoadPlace> Find(const std::string& group, const LoadShare& share);

 private:
  std::mutex mutex_;
  // Guarded by mutex_; a block lives as long as a rank stands there, or a reader has it.
  std::unordered_map<std::string, std::vector<std::weak_ptr<LoadBlock>>> groups_;
};

}  // namespace fathom
