// How much memory does a GPU of this name have?
//
// Two numbers: what is on the board, as nvidia-smi shows it, and what a program sees, which is
// less. The second is what engines reckon with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fathom {

struct Gpu {
  std::string name;        // "H100-80GB"; of a plain size: empty
  uint64_t installed = 0;  // bytes, nvidia-smi's total
  uint64_t visible = 0;    // bytes, the driver's total for a program
  // How those are known, for the report: "assumed 79.1 GiB visible of an H100-80GB".
  std::string basis;
};

// A name in any of the usual spellings ("H100", "NVIDIA H100 80GB HBM3", "a100-40gb", "RTX 4090",
// "MI300X"), or a size ("80GiB", "141GB", "85899345920"), which is taken as visible. A name without
// a size is the most common variant.
// Errors  kCaller, with the nearest name that is known.
Result<Gpu> ParseGpu(std::string_view text);

// A GPU that was measured: nvidia-smi's total, and what is used or free of it where that is known,
// which is what a program sees. Nothing is assumed from its name.
Gpu MeasuredGpu(std::string_view name, uint64_t installed, std::optional<uint64_t> visible = {});

// What ParseGpu() knows by name, for help texts.
std::vector<std::string_view> KnownGpus();

}  // namespace fathom
