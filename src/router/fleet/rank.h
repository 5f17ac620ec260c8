// A worker's data-parallel ranks: each owns a KV cache and is a separate routing candidate.
//
// Every worker has rank 0. Others are known while their events are followed. A rank is created once
// and lives as long as the worker, so that a request may keep a reference to it.
//
// Threads  Any. Reading takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "router/fleet/fleet_pulse.h"
#include "router/fleet/rank_load.h"
#include "router/fleet/rank_slowness.h"
#include "router/fleet/rank_witness.h"
#include "router/fleet/text_record.h"

namespace fathom {

struct Rank {
  explicit Rank(uint32_t n) : number(n) {}

  const uint32_t number;
  RankLoad load;
  RankSlowness slowness;
  RankWitness witness;
  TextRecord text;
  // Its block size is not the fleet's: it is priced by load alone. Relaxed, pairs with nothing.
  std::atomic<bool> doubted{false};
  // Times that its worker became healthy. Relaxed, pairs with nothing.
  std::atomic<uint64_t> recoveries{0};

  // Another number for each process of its engine, as far as health and events show one.
  uint64_t life() const {
    return recoveries.load(std::memory_order_relaxed) + witness.pulse().lives;
  }
  // How many times slower than the fleet it is.
  double SlownessAt(TimePoint now) const {
    return slowness.notable() ? slowness.At(now, life()) : 1;
  }
};

class RankTable {
 public:
  // Ranks from this number on are followed like others, but are not separate candidates.
  static constexpr uint32_t kMost = 256;

  // `pulse`, which may be null, is raised when a rank comes or goes.
  explicit RankTable(std::shared_ptr<FleetPulse> pulse = nullptr);

  // All ranks, also later ones, stand on the board with others of the group.
  void Stand(std::shared_ptr<LoadBoard> board, std::string group);

  // This rank's events are followed from now on, or no longer. Counted: the same rank may briefly
  // be followed twice.
  void Know(uint32_t number);
  void Forget(uint32_t number);

  // Another process may be at the worker's address from now on.
  void Recover();

  // What probe prompts showed about the worker's tokens, for all ranks, also later ones.
  void Probed(std::shared_ptr<const ParityReport> report);

  // Whether there is more than one rank to choose from.
  bool several() const { return followed_.load(std::memory_order_acquire) > 1; }
  // The rank that gets all requests if not several(): the followed one, or rank 0.
  Rank& only() const { return *only_.load(std::memory_order_acquire); }
  // Null: the rank is not followed, or `number` is out of range.
  Rank* Find(uint32_t number) const;

  // Visits every rank that can be chosen: the only one, or all followed ones.
  template <typename F>
  void ForEach(F&& visit) const {
    if (!several()) return visit(only());
    const uint32_t end = end_.load(std::memory_order_acquire);
    bool any = false;
    for (uint32_t i = 0; i < end; ++i) {
      if (slots_[i].followed.load(std::memory_order_acquire) == 0) continue;
      any = true;
      visit(*slots_[i].rank.load(std::memory_order_acquire));
    }
    if (!any) visit(only());  // all were forgotten in the meantime; callers need one
  }
  // Visits every rank that was ever known, also those that cannot be chosen any more: requests may
  // still be there.
  template <typename F>
  void ForEachMade(F&& visit) const {
    const uint32_t end = end_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < end; ++i) {
      if (Rank* const rank = slots_[i].rank.load(std::memory_order_acquire)) visit(*rank);
    }
  }

 private:
  struct Slot {
    std::atomic<Rank*> rank{nullptr};  // set once (release); pairs with ForEach() and Find()
    std::atomic<uint32_t> followed{0};
  };

  Rank& Make(uint32_t number);  // requires mutex_, except in the constructor
  void FindOnly();              // likewise

  const std::shared_ptr<FleetPulse> pulse_;
  std::mutex mutex_;
  std::shared_ptr<LoadBoard> board_;            // guarded by mutex_
  std::string group_;                           // guarded by mutex_
  std::shared_ptr<const ParityReport> parity_;  // guarded by mutex_
  std::array<Slot, kMost> slots_;
  std::array<std::unique_ptr<Rank>, kMost> ranks_;  // guarded by mutex_
  std::atomic<uint32_t> end_{1};                    // all created ranks are below
  std::atomic<uint32_t> followed_{0};               // number of distinct ranks
  std::atomic<Rank*> only_{nullptr};
};

}  // namespace fathom
