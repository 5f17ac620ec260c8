#include "diagnose/sizing/gpu_memory.h"

namespace fathom {

Result<std::vector<GpuReading>> ReadGpuMemory(std::string_view text) {
  return text.find("DCGM_FI_DEV_") != std::string_view::npos ? ReadDcgm(text) : ReadNvidiaSmi(text);
}

}  // namespace fathom
