// A worker's data-parallel ranks: each owns a KV cache and is a candidate of its own.
//
// Every worker has rank 0. Others are known while somebody follows their events; they are made once
// and live as long as the worker, so that a request may hold on to one whatever becomes of it.
//
// Threads  Any. Looking takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "fleet/engine_speed.h"
#include "fleet/rank_load.h"
#include "fleet/rank_witness.h"

namespace fathom {

struct Rank {
  explicit Rank(uint32_t n) : number(n) {}

  const uint32_t number;
  RankLoad load;
  EngineSpeed speed;
  RankWitness witness;
  // Its blocks are not those of the fleet: it is priced by load alone. Orders nothing else.
  std::atomic<bool> doubted{false};
};

class RankTable {
 public:
  // Ranks beyond this are followed like others, but are not candidates of their own.
  static constexpr uint32_t kMost = 256;

  RankTable();

  // A stream of this rank's events is followed from now on, or no longer. Counted: the same rank
  // may be followed twice for a moment.
  void Know(uint32_t number);
  void Forget(uint32_t number);

  // Whether there is a choice to make.
  bool several() const { return followed_.load(std::memory_order_acquire) > 1; }
  // The rank that everything goes to while there is none: the one that is followed, or rank 0.
  Rank& only() const { return *only_.load(std::memory_order_acquire); }
  // Null: nobody follows it, or it is none.
  Rank* Find(uint32_t number) const;

  // Of every rank that can be chosen: the only one, or all that are followed.
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
    if (!any) visit(only());  // all were forgotten meanwhile; callers count on one
  }

 private:
  struct Slot {
    std::atomic<Rank*> rank{nullptr};  // set once; release pairs with the loads above
    std::atomic<uint32_t> followed{0};
  };

  Rank& Make(uint32_t number);  // mutex_ held, but for the constructor
  void FindOnly();              // likewise

  std::mutex mutex_;
  std::array<Slot, kMost> slots_;
  std::array<std::unique_ptr<Rank>, kMost> ranks_;  // guarded by mutex_
  std::atomic<uint32_t> end_{1};                    // every rank made is below
  std::atomic<uint32_t> followed_{0};               // different ranks
  std::atomic<Rank*> only_{nullptr};
};

}  // namespace fathom
