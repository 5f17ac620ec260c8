// Whatever a config says, what is reckoned from it is finite and within bounds, on any engine.
#include "diagnose/sizing/model_shape.h"

#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "diagnose/sizing/what_if.h"

namespace fathom {
namespace {

void CheckReckoned(const ModelShape& shape, EngineKind engine, const Gpu& gpu) {
  KvLayout layout{.engine = engine, .parallel = {}, .dtype = shape.AutoKvDtype()};
  layout.parallel.tensor = 2;
  const auto budget = ReckonBudget(shape, gpu, layout, {});
  if (!budget) return;
  CHECK(budget->cache_bytes <= gpu.visible);
  CHECK(budget->capacity.tokens == budget->capacity.blocks * budget->capacity.block_size);
  CHECK(budget->cache_bytes == 0 || budget->missing_bytes == 0);
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const auto shape = ParseModelShape({reinterpret_cast<const char*>(data), size});
  if (!shape) {
    CHECK(!shape.error().what.empty());
    return 0;
  }
  CHECK(!shape->layers.empty() && shape->layers.size() <= ModelShape::kMaxLayers);
  CHECK(std::isfinite(shape->WeightBytes()) && shape->WeightBytes() >= 0);
  static const auto gpu = ParseGpu("H100");
  for (const EngineKind engine : {EngineKind::kVllm, EngineKind::kSglang, EngineKind::kTrtllm}) {
    CheckReckoned(*shape, engine, *gpu);
  }
  return 0;
}
