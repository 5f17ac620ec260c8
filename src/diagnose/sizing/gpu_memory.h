// How much memory of each GPU is used, whichever tool said it?
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnose/sizing/dcgm.h"
#include "diagnose/sizing/gpu_reading.h"
#include "diagnose/sizing/nvidia_smi.h"

namespace fathom {

// A page of DCGM's exporter or what nvidia-smi printed, by what is in it.
Result<std::vector<GpuReading>> ReadGpuMemory(std::string_view text);

}  // namespace fathom
