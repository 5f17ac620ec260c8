#include "diagnose/sizing/weight_share.h"

namespace fathom {
namespace {

// Over how many GPUs the experts of a layer are spread.
double ExpertWays(const KvLayout& layout) {
  const Parallelism& parallel = layout.parallel;
  // The tensor-parallel group of the others already counts the GPUs of all their ranks.
  const bool beyond =
      parallel.expert_parallel && !parallel.attention_data && layout.engine == EngineKind::kVllm;
  return static_cast<double>(parallel.tensor) * (beyond ? parallel.data : 1);
}

}  // namespace

double WeightsOnGpu(const Stage& stage, const KvLayout& layout, const ModelShape& shape) {
  const double share = static_cast<double>(stage.count) / static_cast<double>(shape.layers.size());
  const ParameterCount& parameters = shape.parameters;
  const double tensor = layout.parallel.tensor;
  if (parameters.total() <= 0) return shape.WeightBytes() * share / tensor;

  const double plain = BytesPerElement(shape.dtype);
  const double dense = shape.dense_bytes_per_parameter;
  const double layers = parameters.attention * dense / layout.AttentionWays() +
                        parameters.dense * dense / tensor +
                        parameters.experts * shape.expert_bytes_per_parameter / ExpertWays(layout);
  double bytes = layers * share;
  const bool first = stage.first == 0;
  const bool last = stage.first + stage.count == shape.layers.size();
  const bool tied = parameters.head == 0;
  // A head that is the embedding needs a copy of it where the two are apart.
  if (first || (last && tied)) bytes += parameters.embedding * plain / tensor;
  if (last) bytes += parameters.head * plain / tensor;
  // Exactly known weights are split as the reckoned ones are.
  return bytes * shape.WeightBytes() / shape.ReckonedWeightBytes();
}

}  // namespace fathom
