// What does nvidia-smi say of its GPUs?
//
// In the forms that people paste: the table, `--query-gpu=... --format=csv` with its heading (with
// or without units), and `-q`.
//
// Memory  At most kMaxGpus readings of at most kMaxGpuName characters each.
// Errors  kCaller: no GPU in it, and what was looked for; more than kMaxGpus.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnose/sizing/gpu_reading.h"

namespace fathom {

Result<std::vector<GpuReading>> ReadNvidiaSmi(std::string_view text);

}  // namespace fathom
