// How many bytes does one number of the KV cache take?
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace fathom {

enum class KvDtype : uint8_t {
  kFloat32,
  kBfloat16,
  kFloat16,
  kFp8,
  kInt8,
  kMxfp8,     // with a scale of one byte for every 32 numbers
  kNvfp4,     // with a scale of one byte for every 16 numbers
  kFp8DsMla,  // the packed layout of sparse latent attention: 656 bytes for DeepSeek's layers
};

std::string_view Name(KvDtype dtype);

// With the scales.
double BytesPerElement(KvDtype dtype);

// An engine's word for it: "fp8_e4m3", "bfloat16", "fp4_e2m1"; nothing for "auto", which means what
// the model says.
// Errors  kCaller: a word that no engine knows.
Result<std::optional<KvDtype>> ParseKvDtype(std::string_view word);

}  // namespace fathom
