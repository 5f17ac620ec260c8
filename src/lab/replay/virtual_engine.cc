#include "lab/replay/virtual_engine.h"

#include <fmt/format.h>

#include <utility>

namespace fathom {

VirtualEngine::VirtualEngine(uint32_t number, const EngineOptions& options,
                             const TimingProfile& profile)
    : number_(number), label_{WorkerId::OfUrl(spec().url).value(), 0}, core_(options, profile) {}

VirtualEngine::VirtualEngine(const VirtualEngine& before, const TimingProfile& profile)
    : VirtualEngine(before.number_, before.core().options(), profile) {}

WorkerSpec VirtualEngine::spec() const {
  return {.url = fmt::format("http://engine-{}:8000", number_)};
}

EngineReport VirtualEngine::report() const {
  const EngineOptions& options = core_.options();
  EngineReport report;
  report.engine = EngineKind::kVllm;
  report.ranks = 1;
  report.block_size = options.block_size;
  report.kv_tokens = core_.capacity_tokens();
  report.max_running = options.max_num_seqs;
  report.batch_tokens = options.max_num_batched_tokens;
  return report;
}

bool VirtualEngine::Submit(size_t owner, EngineRequest request) {
  if (!core_.Submit(std::move(request))) return false;
  owners_.push_back(owner);
  return true;
}

bool VirtualEngine::BeginStep(TimePoint now) {
  if (step_end_ != kNever || !core_.Step(step_)) return false;
  step_end_ = now + step_.duration;
  return true;
}

EngineStep& VirtualEngine::EndStep() {
  step_end_ = kNever;
  return step_;
}

std::span<const CacheReader::Found> TrueDepths::Find(std::span<const TokenId> tokens, uint64_t,
                                                     const KnownPrefix&) {
  found_.clear();
  for (VirtualEngine* const engine : engines_) {
    CacheReader::Found found{.rank = engine->label(),
                             .block_size = engine->core().options().block_size,
                             .held = engine->held_tokens()};
    found.tokens.fill(engine->core().CachedTokens(tokens));
    found_.push_back(found);
  }
  return found_;
}

size_t TrueDepths::blocks() const {
  size_t blocks = 0;
  for (const VirtualEngine* const engine : engines_)
    blocks += engine->core().pool().cached_blocks();
  return blocks;
}

}  // namespace fathom
