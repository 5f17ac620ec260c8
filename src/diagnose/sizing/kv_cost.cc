#include "diagnose/sizing/kv_cost.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fathom {
namespace {

Result<void> CheckWays(uint32_t ways, const char* name) {
  if (ways >= 1 && ways <= Parallelism::kMaxWays) return {};
  return Fail(Blame::kCaller, "{} parallelism of {} is not between 1 and {}", name, ways,
              Parallelism::kMaxWays);
}

// Numbers of the latent vector are all that is kept; the packed layout keeps the rotary part whole
// and a scale of four bytes for every 128 numbers of the rest.
uint64_t LatentBytes(const LatentAttention& latent, KvDtype dtype) {
  constexpr uint32_t kScaled = 128;
  // The indexer keeps one byte for each number and scales as above, whatever the cache's type.
  const uint64_t indexer =
      latent.index_head_dim == 0
          ? 0
          : latent.index_head_dim + (latent.index_head_dim + kScaled - 1) / kScaled * uint64_t{4};
  if (dtype == KvDtype::kFp8DsMla) {
    return latent.rank + (latent.rank + kScaled - 1) / kScaled * uint64_t{4} +
           uint64_t{2} * latent.rope_dim + indexer;
  }
  const double numbers = static_cast<double>(latent.rank) + latent.rope_dim;
  return static_cast<uint64_t>(std::ceil(numbers * BytesPerElement(dtype))) + indexer;
}

// One token of one layer that keeps keys and values, on one GPU.
uint64_t LayerBytes(const KvLayout& layout, const ModelShape& shape) {
  // Every GPU of the group needs the whole latent vector: its heads are made from it.
  if (shape.latent) return LatentBytes(*shape.latent, layout.dtype);
  const uint32_t ways = layout.AttentionWays();
  // Heads do not split: beyond one per GPU they are copied.
  const uint32_t heads = std::max(1u, (shape.kv_heads + ways - 1) / ways);
  const double numbers = static_cast<double>(heads) * (shape.head_dim + shape.v_head_dim);
  return static_cast<uint64_t>(std::ceil(numbers * BytesPerElement(layout.dtype)));
}

}  // namespace

uint32_t KvLayout::AttentionWays() const {
  if (!parallel.attention_data) return parallel.tensor;
  if (engine == EngineKind::kTrtllm) return 1;
  return std::max(1u, parallel.tensor / parallel.data);
}

Result<void> Check(const KvLayout& layout, const ModelShape& shape) {
  const Parallelism& parallel = layout.parallel;
  TRY_VOID(CheckWays(parallel.tensor, "tensor"));
  TRY_VOID(CheckWays(parallel.pipeline, "pipeline"));
  TRY_VOID(CheckWays(parallel.data, "data"));
  if (parallel.pipeline > shape.layers.size()) {
    return Fail(Blame::kCaller, "{} pipeline stages for {} layers", parallel.pipeline,
                shape.layers.size());
  }
  const bool divides = layout.engine == EngineKind::kTrtllm || parallel.tensor % parallel.data == 0;
  if (parallel.attention_data && !divides) {
    return Fail(Blame::kCaller,
                "data-parallel attention needs a tensor parallelism ({}) that {} "
                "divides",
                parallel.tensor, parallel.data);
  }
  if (layout.dtype == KvDtype::kFp8DsMla && !shape.latent) {
    return Fail(Blame::kCaller, "fp8_ds_mla is for models with latent attention (kv_lora_rank)");
  }
  return {};
}

double KvCost::ContextBytes(double tokens) const {
  return static_cast<double>(full_bytes) * tokens +
         static_cast<double>(window_bytes) * std::min<double>(tokens, window);
}

std::vector<Stage> StagesOf(const KvLayout& layout, const ModelShape& shape) {
  const auto layers = static_cast<uint32_t>(shape.layers.size());
  const uint32_t stages = layout.parallel.pipeline;
  CHECK(stages >= 1 && stages <= layers);
  std::vector<Stage> all;
  uint32_t first = 0;
  for (uint32_t i = 0; i < stages; ++i) {
    const uint32_t count = layers / stages + (i < layers % stages ? 1 : 0);
    all.push_back({.first = first, .count = count});
    first += count;
  }
  return all;
}

KvCost CostOf(const Stage& stage, const KvLayout& layout, const ModelShape& shape) {
  KvCost cost{.window = shape.window};
  const uint64_t bytes = LayerBytes(layout, shape);
  for (uint32_t i = stage.first; i < stage.first + stage.count; ++i) {
    const LayerKind kind = shape.layers[i];
    if (kind == LayerKind::kState) {
      ++cost.state_layers;
    } else if (kind == LayerKind::kWindow && !layout.whole_windows) {
      cost.window_bytes += bytes;
    } else {
      cost.full_bytes += bytes;
    }
  }
  if (cost.window_bytes == 0) cost.window = 0;
  return cost;
}

}  // namespace fathom
