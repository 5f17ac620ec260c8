// How many parameters does a model have, by its dimensions?
#pragma once

#include "base/result.h"
#include "diagnose/sizing/config_fields.h"
#include "diagnose/sizing/model_shape.h"

namespace fathom {

// `shape` has its layers and heads already. All zeros where the config does not say enough.
// Errors  kCaller, naming a field that makes no sense.
Result<ParameterCount> CountParameters(const ConfigFields& fields, const ModelShape& shape);

}  // namespace fathom
