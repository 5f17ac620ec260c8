// What would another setting do to the cache and to what lives in it?
//
//   SizingCase sizing{...};
//   TRY(const SizingOutcome now, Reckon(sizing, {}));
//   TRY(const SizingOutcome then, Reckon(sizing, {.kv_dtype = KvDtype::kFp8}));
//   gain = then.demand.in_time - now.demand.in_time
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "diagnose/sizing/gpu.h"
#include "diagnose/sizing/kv_budget.h"
#include "diagnose/sizing/kv_cost.h"
#include "diagnose/sizing/kv_demand.h"
#include "diagnose/sizing/model_shape.h"

namespace fathom {

struct SizingCase {
  ModelShape shape;
  Gpu gpu;
  KvLayout layout;
  EngineMemory memory;
  Workload workload;
  // What the engine said itself beats arithmetic; a change then scales it as it scales the
  // arithmetic.
  std::optional<KvCapacity> observed;
  uint64_t host_bytes = 0;  // of host memory for evicted blocks, for each GPU
};

// What is not set stays as it is.
struct WhatIf {
  std::optional<uint64_t> max_sequences;
  std::optional<double> fraction;
  std::optional<KvDtype> kv_dtype;
  std::optional<uint64_t> host_bytes;  // for each GPU
};

struct SizingOutcome {
  KvBudget budget;
  KvDemand demand;
};

// Errors  As ReckonBudget().
Result<SizingOutcome> Reckon(const SizingCase& sizing, const WhatIf& change);

}  // namespace fathom
