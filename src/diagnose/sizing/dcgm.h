// What does the exporter of DCGM say of its GPUs?
//
// Its Prometheus page: DCGM_FI_DEV_FB_TOTAL, _FB_USED, _FB_FREE, _FB_RESERVED and _GPU_UTIL. A
// slice of a GPU is a GPU of its own, named "0/7".
//
// Memory  At most kMaxGpus readings of at most kMaxGpuName characters each.
// Errors  kCaller: no GPU in it, and what was looked for; more than kMaxGpus.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnose/sizing/gpu_reading.h"

namespace fathom {

Result<std::vector<GpuReading>> ReadDcgm(std::string_view page);

}  // namespace fathom
