// In what type are a model's weights, and what does it ask of its cache?
#pragma once

#include "diagnose/sizing/config_fields.h"
#include "diagnose/sizing/model_shape.h"

namespace fathom {

// torch_dtype and quantization_config. What is not known counts as not quantized, which errs on the
// side of larger weights.
void ReadWeightType(const ConfigFields& fields, ModelShape& shape);

}  // namespace fathom
