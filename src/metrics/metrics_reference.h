// The reference of all metrics, for operators.
#pragma once

#include <string>

namespace fathom {

// The whole of docs/metrics.md.
std::string MetricsReference();

}  // namespace fathom
