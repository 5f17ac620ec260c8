// Which layers of a model keep all tokens, which a window of them, and which none?
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "diagnose/sizing/config_fields.h"
#include "diagnose/sizing/model_shape.h"

namespace fathom {

struct LayerKinds {
  std::vector<LayerKind> layers;
  uint32_t window = 0;  // 0: no layer has one
};

// Written out layer by layer where the config does so, else by the pattern that the model type
// implies.
// Errors  kCaller, naming the field.
Result<LayerKinds> ReadLayerKinds(const ConfigFields& fields);

}  // namespace fathom
