#include "diagnose/sizing/model_shape.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "diagnose/sizing/config_fields.h"
#include "diagnose/sizing/layer_kinds.h"
#include "diagnose/sizing/parameter_count.h"
#include "diagnose/sizing/weight_type.h"

namespace fathom {
namespace {

constexpr size_t kMaxConfigBytes = 16 << 20;
constexpr uint64_t kMaxHeads = 1 << 16;
constexpr uint64_t kMaxHeadDim = 1 << 16;
constexpr uint64_t kMaxContext = uint64_t{1} << 40;

// Python writes numbers that are not JSON ("time_step_limit": [0.0, Infinity]); none of them
// matters here.
std::string WithoutPythonNumbers(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (!quoted && rest.starts_with("-Infinity")) {
      plain += "null";
      i += std::string_view("-Infinity").size() - 1;
    } else if (!quoted && (rest.starts_with("Infinity") || rest.starts_with("NaN"))) {
      plain += "null";
      i +=
          (rest.front() == 'I' ? std::string_view("Infinity") : std::string_view("NaN")).size() - 1;
    } else {
      if (text[i] == '"') quoted = !quoted;
      plain += text[i];
      if (quoted && text[i] == '\\' && i + 1 < text.size()) plain += text[++i];
    }
  }
  return plain;
}

Result<Json> ParseObject(std::string_view text) {
  if (text.size() > kMaxConfigBytes) {
    return Fail(Blame::kCaller, "{} bytes are too many for a model's config", text.size());
  }
  TRY(Json json, Json::ParseWithLargeNumbers(WithoutPythonNumbers(text)));
  if (!json.object()) return Fail(Blame::kCaller, "a JSON object is needed");
  return json;
}

Result<std::optional<LatentAttention>> ReadLatent(const ConfigFields& fields) {
  TRY(const auto rank, fields.Number({"kv_lora_rank"}, kMaxHeadDim));
  if (rank.value_or(0) == 0) return std::nullopt;
  TRY(const uint64_t rope, fields.Needed({"qk_rope_head_dim"}, kMaxHeadDim));
  TRY(const auto index, fields.Number({"index_head_dim"}, kMaxHeadDim));
  return LatentAttention{.rank = static_cast<uint32_t>(*rank),
                         .rope_dim = static_cast<uint32_t>(rope),
                         .index_head_dim = static_cast<uint32_t>(index.value_or(0))};
}

Result<uint64_t> ReadHeadDim(const ConfigFields& fields, uint64_t heads) {
  TRY(const auto stated,
      fields.Number({"head_dim", "kv_channels", "attention_head_dim"}, kMaxHeadDim));
  if (stated.value_or(0) > 0) return *stated;
  TRY(const auto hidden, fields.Number({"hidden_size", "n_embd", "d_model"}));
  if (hidden.value_or(0) < heads) {
    return Fail(Blame::kCaller,
                "head_dim is missing, and so is a hidden_size that num_attention_heads divides");
  }
  return *hidden / heads;
}

Result<void> ReadHeads(const ConfigFields& fields, ModelShape& shape) {
  TRY(const uint64_t heads, fields.Needed({"num_attention_heads", "n_head"}, kMaxHeads));
  TRY(const auto kv,
      fields.Number({"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"},
                    kMaxHeads));
  if (kv && *kv == 0) return Fail(Blame::kCaller, "num_key_value_heads is 0");
  const uint64_t shared = fields.Flag("multi_query", false) ? 1 : heads;
  shape.kv_heads = static_cast<uint32_t>(kv.value_or(shared));
  TRY(const uint64_t head_dim, ReadHeadDim(fields, heads));
  TRY(const auto v_head_dim, fields.Number({"v_head_dim"}, kMaxHeadDim));
  shape.head_dim = static_cast<uint32_t>(head_dim);
  shape.v_head_dim = static_cast<uint32_t>(v_head_dim.value_or(0) > 0 ? *v_head_dim : head_dim);
  return {};
}

Result<void> ReadAttention(const ConfigFields& fields, ModelShape& shape) {
  if (fields.Find("block_configs")) {
    return Fail(Blame::kCaller,
                "block_configs: layers with different numbers of heads are not supported");
  }
  TRY(LayerKinds kinds, ReadLayerKinds(fields));
  shape.layers = std::move(kinds.layers);
  shape.window = kinds.window;
  TRY(shape.latent, ReadLatent(fields));
  if (shape.CountOf(LayerKind::kState) == shape.layers.size()) return {};
  return ReadHeads(fields, shape);
}

}  // namespace

uint32_t ModelShape::CountOf(LayerKind kind) const {
  return static_cast<uint32_t>(std::ranges::count(layers, kind));
}

double ModelShape::WeightBytes() const {
  return weight_bytes ? static_cast<double>(*weight_bytes) : ReckonedWeightBytes();
}

double ModelShape::ReckonedWeightBytes() const {
  return (parameters.embedding + parameters.head) * BytesPerElement(dtype) +
         (parameters.attention + parameters.dense) * dense_bytes_per_parameter +
         parameters.experts * expert_bytes_per_parameter;
}

Result<ModelShape> ParseModelShape(std::string_view config) {
  TRY(const Json json, ParseObject(config));
  const ConfigFields fields(json);
  ModelShape shape;
  const Json* architectures = json.Find("architectures");
  if (architectures && architectures->array() && !architectures->array()->empty()) {
    const std::string* first = architectures->array()->front().string();
    if (first) shape.architecture = first->substr(0, 128);
  }
  if (shape.architecture.empty()) shape.architecture = fields.Text({"model_type"});
  TRY_VOID(ReadAttention(fields, shape));
  ReadWeightType(fields, shape);
  TRY(shape.parameters, CountParameters(fields, shape));
  TRY(const auto context,
      fields.Number({"max_position_embeddings", "n_positions", "seq_length"}, kMaxContext));
  shape.context_length = context.value_or(0);
  return shape;
}

Result<uint64_t> ParseWeightIndex(std::string_view index) {
  TRY(const Json json, ParseObject(index));
  const Json* metadata = json.Find("metadata");
  const Json* total = metadata ? metadata->Find("total_size") : nullptr;
  // Some writers make a floating-point number of it.
  const auto bytes = total ? total->number() : std::nullopt;
  if (!bytes || !(*bytes > 0) || *bytes > 1e16) {
    return Fail(Blame::kCaller,
                "metadata.total_size is missing or no size; the size of the weights "
                "is needed");
  }
  return static_cast<uint64_t>(*bytes);
}

Result<ModelShape> ReadModelShape(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path file =
      fs::is_directory(path, ignored) ? fs::path(path) / "config.json" : fs::path(path);
  auto text = ReadFile(file.string());
  if (!text) return std::unexpected(std::move(text).error().In(file.string()));
  auto shape = ParseModelShape(*text);
  if (!shape) return std::unexpected(std::move(shape).error().In(file.string()));
  const fs::path index = file.parent_path() / "model.safetensors.index.json";
  if (!fs::exists(index, ignored)) return shape;
  auto index_text = ReadFile(index.string());
  if (!index_text) return std::unexpected(std::move(index_text).error().In(index.string()));
  auto bytes = ParseWeightIndex(*index_text);
  if (!bytes) return std::unexpected(std::move(bytes).error().In(index.string()));
  shape->weight_bytes = shape->stored_wide ? *bytes / 2 : *bytes;
  return shape;
}

}  // namespace fathom
