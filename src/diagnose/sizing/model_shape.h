// What of a model decides the size of its KV cache and of its weights?
//
// Read from the config.json that stands beside the weights of a Hugging Face model; for a model of
// several parts (vision, audio) from its language part.
//
// Memory  At most kMaxLayers layers, whatever the file says.
// Errors  kCaller, with the name of the field that is missing or makes no sense, and what is
// needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnose/sizing/kv_dtype.h"

namespace fathom {

// What a layer keeps of the tokens before it.
enum class LayerKind : uint8_t {
  kFull,    // all of them
  kWindow,  // the last ones, at most a window
  kState,   // a state of fixed size (Mamba, linear attention): nothing per token
};

// Keys and values as one compressed vector for all heads.
struct LatentAttention {
  uint32_t rank = 0;            // kv_lora_rank
  uint32_t rope_dim = 0;        // qk_rope_head_dim
  uint32_t index_head_dim = 0;  // of the indexer of sparse attention; 0: has none

  bool operator==(const LatentAttention&) const = default;
};

// Reckoned from the dimensions. Biases and vision towers are not counted.
struct ParameterCount {
  double embedding = 0;
  double head = 0;       // 0: the embedding serves as the head
  double attention = 0;  // over all layers
  double dense = 0;      // over all layers: whatever else every token passes
  double experts = 0;    // over all layers: those that are routed to

  double total() const { return embedding + head + attention + dense + experts; }
  bool operator==(const ParameterCount&) const = default;
};

struct ModelShape {
  static constexpr uint32_t kMaxLayers = 4096;

  std::string architecture;       // "LlamaForCausalLM", else the model type; may be empty
  std::vector<LayerKind> layers;  // from the first to the last; at least one
  uint32_t window = 0;            // tokens that a kWindow layer keeps
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t v_head_dim = 0;
  std::optional<LatentAttention> latent;  // then heads do not matter
  // Of what is computed: float32 weights are halved when engines load them.
  KvDtype dtype = KvDtype::kBfloat16;
  bool stored_wide = false;         // weights are files of float32
  std::optional<KvDtype> kv_dtype;  // that the checkpoint was quantized for
  std::string quantization;         // "fp8", "awq", "mxfp4"; empty: none
  // Of weights, after quantization; embedding and head are not quantized.
  double dense_bytes_per_parameter = 2;
  double expert_bytes_per_parameter = 2;
  ParameterCount parameters;    // total 0: the file does not say enough
  uint64_t context_length = 0;  // max_position_embeddings; 0: not said
  // What the weights take on all GPUs together, where the index beside them says it.
  std::optional<uint64_t> weight_bytes;

  uint32_t CountOf(LayerKind kind) const;
  // Exact where an index said it, else reckoned from the parameters; 0: not known.
  double WeightBytes() const;
  double ReckonedWeightBytes() const;
  // What a cache of dtype "auto" holds.
  KvDtype AutoKvDtype() const { return kv_dtype.value_or(dtype); }
};

// The text of config.json.
Result<ModelShape> ParseModelShape(std::string_view config);

// `metadata.total_size` of a model.safetensors.index.json.
Result<uint64_t> ParseWeightIndex(std::string_view index);

// config.json at `path`, or in the folder `path`, with the weight index beside it if there is one.
Result<ModelShape> ReadModelShape(const std::string& path);

}  // namespace fathom
