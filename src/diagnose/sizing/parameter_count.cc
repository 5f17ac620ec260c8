#include "diagnose/sizing/parameter_count.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace fathom {
namespace {

// 0: the config does not say.
Result<double> Dimension(const ConfigFields& fields, ConfigFields::Names names) {
  TRY(const auto number, fields.Number(names));
  return static_cast<double>(number.value_or(0));
}

// Compressed attention: down and up again for queries, and for keys with values.
Result<double> LatentLayer(const ConfigFields& fields, const ModelShape& shape, double hidden,
                           double heads) {
  TRY(const double q_rank, Dimension(fields, {"q_lora_rank"}));
  TRY(const double nope, Dimension(fields, {"qk_nope_head_dim"}));
  const LatentAttention& latent = *shape.latent;
  const double queries = heads * (nope + latent.rope_dim);
  const double query = q_rank > 0 ? q_rank * (hidden + queries) : hidden * queries;
  const double down = hidden * (static_cast<double>(latent.rank) + latent.rope_dim);
  const double up = latent.rank * heads * (nope + shape.v_head_dim);
  return query + down + up + heads * shape.v_head_dim * hidden;
}

Result<double> AttentionLayer(const ConfigFields& fields, const ModelShape& shape, double hidden,
                              double heads) {
  if (shape.latent) return LatentLayer(fields, shape, hidden, heads);
  const double keys_and_values =
      hidden * shape.kv_heads * (static_cast<double>(shape.head_dim) + shape.v_head_dim);
  return hidden * heads * shape.head_dim + keys_and_values + heads * shape.v_head_dim * hidden;
}

struct Experts {
  double count = 0;  // routed to, of one layer; 0: no experts at all
  double inner = 0;
  double shared_inner = 0;  // of those that every token passes
  double dense_inner = 0;   // of layers without experts
  double layers = 0;        // that have experts
};

// How many of the layers have experts: all but the first few, or every so many.
Result<double> LayersWithExperts(const ConfigFields& fields, const ModelShape& shape) {
  const auto layers = static_cast<double>(shape.layers.size());
  TRY(const double dense_first, Dimension(fields, {"first_k_dense_replace", "num_dense_layers"}));
  TRY(const double step, Dimension(fields, {"decoder_sparse_step", "interleave_moe_layer_step",
                                            "expert_layer_period"}));
  double without = dense_first;
  if (const Json* dense = fields.Find("mlp_only_layers"); dense && dense->array()) {
    without += static_cast<double>(dense->array()->size());
  }
  return std::max(0.0, layers - without) / std::max(1.0, step);
}

Result<Experts> ReadExperts(const ConfigFields& fields, const ModelShape& shape) {
  Experts experts;
  TRY(experts.count, Dimension(fields, {"num_local_experts", "n_routed_experts", "num_experts",
                                        "moe_num_experts"}));
  TRY(const double inner, Dimension(fields, {"intermediate_size", "n_inner", "ffn_hidden_size"}));
  TRY(const double dense, Dimension(fields, {"intermediate_size_mlp"}));
  experts.dense_inner = dense > 0 ? dense : inner;
  if (experts.count == 0) return experts;

  TRY(const double own, Dimension(fields, {"moe_intermediate_size", "expert_ffn_hidden_size"}));
  experts.inner = own > 0 ? own : inner;
  TRY(const double shared, Dimension(fields, {"n_shared_experts", "num_shared_experts"}));
  TRY(const double shared_inner, Dimension(fields, {"shared_expert_intermediate_size"}));
  experts.shared_inner = shared_inner > 0 ? shared_inner : shared * experts.inner;
  // Its layers with experts all have a shared one, which no field counts.
  if (dense > 0) experts.shared_inner = experts.inner;
  TRY(experts.layers, LayersWithExperts(fields, shape));
  return experts;
}

void AddFeedForward(const Experts& experts, double layers, double hidden, ParameterCount& count) {
  // Gate, up and down.
  const double plain = 3 * hidden * experts.dense_inner;
  const double shared = 3 * hidden * experts.shared_inner;
  const double router = hidden * experts.count;
  const double norms = 2 * hidden;
  count.dense += (layers - experts.layers) * plain + experts.layers * (shared + router);
  count.dense += layers * norms + hidden;
  count.experts = experts.layers * experts.count * 3 * hidden * experts.inner;
}

}  // namespace

Result<ParameterCount> CountParameters(const ConfigFields& fields, const ModelShape& shape) {
  TRY(const double hidden, Dimension(fields, {"hidden_size", "n_embd", "d_model"}));
  TRY(const double vocabulary, Dimension(fields, {"vocab_size", "padded_vocab_size"}));
  TRY(const double heads, Dimension(fields, {"num_attention_heads", "n_head"}));
  TRY(const Experts experts, ReadExperts(fields, shape));
  const bool enough =
      hidden > 0 && vocabulary > 0 && heads > 0 && (experts.dense_inner > 0 || experts.inner > 0);
  // What a layer with a state weighs, no common field says.
  if (!enough || shape.CountOf(LayerKind::kState) > 0) return ParameterCount{};

  ParameterCount count;
  const auto layers = static_cast<double>(shape.layers.size());
  count.embedding = vocabulary * hidden;
  const bool tied =
      fields.Flag("tie_word_embeddings", fields.Text({"model_type"}).starts_with("gemma"));
  count.head = tied ? 0 : vocabulary * hidden;
  TRY(const double attention, AttentionLayer(fields, shape, hidden, heads));
  count.attention = layers * attention;
  AddFeedForward(experts, layers, hidden, count);
  return count;
}

}  // namespace fathom
