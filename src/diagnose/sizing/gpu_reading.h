// How much memory of one GPU is used, as some tool printed it?
//
// What a tool does not say is missing, never guessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace fathom {

struct GpuReading {
  std::string gpu;                // index, or what the source calls it
  std::string name;               // "NVIDIA H200"; the table cuts long ones off
  std::string host;               // DCGM only
  std::string pod;                // DCGM only
  std::optional<uint64_t> total;  // bytes
  std::optional<uint64_t> used;
  std::optional<uint64_t> free;
  std::optional<double> busy;  // 0 to 1

  bool operator==(const GpuReading&) const = default;
};

constexpr size_t kMaxGpus = 1024;
constexpr size_t kMaxGpuName = 128;

}  // namespace fathom
