// What would this engine do, if time passed only when somebody says so?
//
// A simulated engine, and what it says of itself to whoever asks: each router has a worker of its
// own for it. One step after the other; requests that come during a step join the next.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "lab/mock/engine_core.h"
#include "router/fleet/worker.h"
#include "router/routing/steering.h"

namespace fathom {

class VirtualEngine {
 public:
  // `number` tells the engines of a fleet apart. The profile outlives it.
  VirtualEngine(uint32_t number, const EngineOptions& options, const TimingProfile& profile);
  // The same worker after a restart: it has forgotten everything.
  VirtualEngine(const VirtualEngine& before, const TimingProfile& profile);

  // `owner` is the caller's name for the request. False: it could never fit the cache.
  bool Submit(size_t owner, EngineRequest request);

  // Whether a step began; false if one is under way or there is nothing to do.
  bool BeginStep(TimePoint now);
  // When the step is over that is under way; kNever if there is none.
  TimePoint step_end() const { return step_end_; }
  // What the step brought, valid until the next one begins.
  EngineStep& EndStep();

  size_t OwnerOf(SequenceId sequence) const { return owners_[sequence - 1]; }
  uint32_t number() const { return number_; }
  WorkerSpec spec() const;
  EngineReport report() const;
  RankLabel label() const { return label_; }
  const EngineCore& core() const { return core_; }
  // Tokens that its cache holds, used or not.
  uint64_t held_tokens() const {
    return uint64_t{core_.pool().cached_blocks()} * core_.options().block_size;
  }

 private:
  const uint32_t number_;
  const RankLabel label_;
  EngineCore core_;
  EngineStep step_;
  TimePoint step_end_ = kNever;
  std::vector<size_t> owners_;  // by sequence, which count from 1
};

// An oracle: asks the engines' caches themselves, and is never late. The list outlives it; who is
// in it may change.
class TrueDepths final : public DepthSource {
 public:
  explicit TrueDepths(std::span<VirtualEngine* const> engines) : engines_(engines) {}

  std::span<const CacheReader::Found> Find(std::span<const TokenId> tokens, uint64_t,
                                           const KnownPrefix&) override;
  void Keep(std::span<const TokenId>, uint64_t, PrefixKeys&) override {}
  size_t blocks() const override;

 private:
  const std::span<VirtualEngine* const> engines_;
  std::vector<CacheReader::Found> found_;
};

}  // namespace fathom
