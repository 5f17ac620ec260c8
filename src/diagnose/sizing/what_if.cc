#include "diagnose/sizing/what_if.h"

#include <algorithm>
#include <cmath>

namespace fathom {
namespace {

SizingCase Changed(SizingCase sizing, const WhatIf& change) {
  if (change.max_sequences) sizing.workload.max_sequences = change.max_sequences;
  if (!sizing.workload.max_sequences) sizing.workload.max_sequences = sizing.memory.max_sequences;
  if (change.fraction) sizing.memory.fraction = change.fraction;
  if (change.kv_dtype) sizing.layout.dtype = *change.kv_dtype;
  if (change.host_bytes) sizing.host_bytes = *change.host_bytes;
  return sizing;
}

uint64_t ContextOf(const Workload& workload) {
  const double tokens =
      std::max(0.0, workload.prompt_tokens) + std::max(0.0, workload.output_tokens);
  return static_cast<uint64_t>(std::min(tokens, 1e12));
}

Result<KvBudget> BudgetOf(const SizingCase& sizing) {
  return ReckonBudget(sizing.shape, sizing.gpu, sizing.layout, sizing.memory,
                      ContextOf(sizing.workload));
}

// What the engine said, as much larger or smaller as the arithmetic becomes.
KvCapacity Scaled(const KvCapacity& said, const KvBudget& now, const KvBudget& then) {
  const auto tokens = [](const KvBudget& budget) {
    return static_cast<double>(budget.capacity.tokens);
  };
  // The arithmetic says that it cannot run, yet it does: only what a token costs is left to go by.
  const double ratio =
      now.capacity.tokens > 0
          ? tokens(then) / tokens(now)
          : static_cast<double>(now.cost.BytesPerToken()) /
                static_cast<double>(std::max<uint64_t>(1, then.cost.BytesPerToken()));
  const uint32_t block_size = std::max(1u, said.block_size);
  KvCapacity scaled = said;
  scaled.tokens = static_cast<uint64_t>(static_cast<double>(said.tokens) * ratio);
  scaled.blocks = scaled.tokens / block_size;
  return scaled;
}

double HostTokens(const SizingCase& sizing, const KvBudget& budget) {
  const auto context = static_cast<double>(std::max<uint64_t>(1, ContextOf(sizing.workload)));
  const double per_token = budget.cost.ContextBytes(context) / context;
  return per_token > 0 ? static_cast<double>(sizing.host_bytes) / per_token : 0;
}

}  // namespace

Result<SizingOutcome> Reckon(const SizingCase& sizing, const WhatIf& change) {
  const SizingCase changed = Changed(sizing, change);
  TRY(KvBudget budget, BudgetOf(changed));
  if (sizing.observed) {
    const bool same = changed.layout == sizing.layout && !change.fraction;
    if (same) {
      budget.capacity = *sizing.observed;
    } else {
      TRY(const KvBudget now, BudgetOf(sizing));
      budget.capacity = Scaled(*sizing.observed, now, budget);
    }
  }
  const KvDemand demand =
      ReckonDemand(budget.capacity, changed.workload, HostTokens(changed, budget));
  return SizingOutcome{.budget = std::move(budget), .demand = demand};
}

}  // namespace fathom
