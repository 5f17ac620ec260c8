// How much of the weights lies on one GPU of a pipeline stage?
#pragma once

#include "diagnose/sizing/kv_cost.h"
#include "diagnose/sizing/model_shape.h"

namespace fathom {

// Bytes. Layers are taken as equally heavy; the embedding is on the first stage and the head on the
// last. Data-parallel attention copies the weights of attention, expert parallelism spreads those
// of experts further. `layout` is one that Check() lets pass.
double WeightsOnGpu(const Stage& stage, const KvLayout& layout, const ModelShape& shape);

}  // namespace fathom
