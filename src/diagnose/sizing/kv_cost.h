// What does one token of context cost in the KV cache of one GPU?
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "diagnose/sizing/kv_dtype.h"
#include "diagnose/sizing/model_shape.h"
#include "engine/engine_report.h"

namespace fathom {

// How one copy of the model is laid over GPUs.
struct Parallelism {
  static constexpr uint32_t kMaxWays = 4096;

  uint32_t tensor = 1;
  uint32_t pipeline = 1;
  uint32_t data = 1;
  // Attention is done data-parallel within the tensor-parallel group: --enable-dp-attention of
  // SGLang (where `tensor` counts all GPUs), enable_attention_dp of TensorRT-LLM.
  bool attention_data = false;
  // Experts are spread over all ranks, not copied by each.
  bool expert_parallel = false;

  bool operator==(const Parallelism&) const = default;
};

// How the cache of one engine is laid out.
struct KvLayout {
  EngineKind engine = EngineKind::kUnknown;
  Parallelism parallel;
  KvDtype dtype = KvDtype::kBfloat16;
  // Window layers keep everything, as full ones do: engines without a hybrid cache.
  bool whole_windows = false;

  // Over how many GPUs the heads of one attention layer are spread.
  uint32_t AttentionWays() const;

  bool operator==(const KvLayout&) const = default;
};

// Errors  kCaller: a number of 0 or beyond kMaxWays; data that does not divide tensor under
//         attention_data; more stages than layers; fp8_ds_mla without latent attention.
Result<void> Check(const KvLayout& layout, const ModelShape& shape);

struct KvCost {
  uint64_t full_bytes = 0;    // of a token in the layers that keep everything
  uint64_t window_bytes = 0;  // in those that keep a window; what is older costs nothing there
  uint32_t window = 0;        // tokens
  uint32_t state_layers = 0;  // these cost nothing per token

  // In a context shorter than the window.
  uint64_t BytesPerToken() const { return full_bytes + window_bytes; }
  // What a context of so many tokens takes.
  double ContextBytes(double tokens) const;

  bool operator==(const KvCost&) const = default;
};

// Layers [first, first + count) of the model.
struct Stage {
  uint32_t first = 0;
  uint32_t count = 0;
};

// The pipeline's stages; the first ones have a layer more where it does not come out even. `layout`
// is one that Check() lets pass.
std::vector<Stage> StagesOf(const KvLayout& layout, const ModelShape& shape);
// On one GPU of that stage.
KvCost CostOf(const Stage& stage, const KvLayout& layout, const ModelShape& shape);

}  // namespace fathom
