#include "diagnose/sizing/kv_dtype.h"

#include "base/check.h"
#include "base/text.h"

namespace fathom {
namespace {

struct DtypeWord {
  std::string_view word;
  KvDtype dtype;
};

constexpr DtypeWord kWords[] = {
    {"float32", KvDtype::kFloat32},
    {"fp32", KvDtype::kFloat32},
    {"float", KvDtype::kFloat32},
    {"bfloat16", KvDtype::kBfloat16},
    {"bf16", KvDtype::kBfloat16},
    {"float16", KvDtype::kFloat16},
    {"fp16", KvDtype::kFloat16},
    {"half", KvDtype::kFloat16},
    {"fp8", KvDtype::kFp8},
    {"fp8_e4m3", KvDtype::kFp8},
    {"fp8_e5m2", KvDtype::kFp8},
    {"fp8_inc", KvDtype::kFp8},
    {"float8_e4m3fn", KvDtype::kFp8},
    {"float8_e5m2", KvDtype::kFp8},
    {"int8", KvDtype::kInt8},
    {"mxfp8", KvDtype::kMxfp8},
    {"nvfp4", KvDtype::kNvfp4},
    {"fp4_e2m1", KvDtype::kNvfp4},
    {"fp8_ds_mla", KvDtype::kFp8DsMla},
};

}  // namespace

std::string_view Name(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::kFloat32:
      return "float32";
    case KvDtype::kBfloat16:
      return "bfloat16";
    case KvDtype::kFloat16:
      return "float16";
    case KvDtype::kFp8:
      return "fp8";
    case KvDtype::kInt8:
      return "int8";
    case KvDtype::kMxfp8:
      return "mxfp8";
    case KvDtype::kNvfp4:
      return "nvfp4";
    case KvDtype::kFp8DsMla:
      return "fp8_ds_mla";
  }
  CHECK(false);
}

double BytesPerElement(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::kFloat32:
      return 4;
    case KvDtype::kBfloat16:
    case KvDtype::kFloat16:
      return 2;
    case KvDtype::kFp8:
    case KvDtype::kInt8:
    case KvDtype::kFp8DsMla:
      return 1;
    case KvDtype::kMxfp8:
      return 1 + 1.0 / 32;
    case KvDtype::kNvfp4:
      return 0.5 + 1.0 / 16;
  }
  CHECK(false);
}

Result<std::optional<KvDtype>> ParseKvDtype(std::string_view word) {
  if (EqualsIgnoreCase(word, "auto")) return std::nullopt;
  for (const DtypeWord& known : kWords) {
    if (EqualsIgnoreCase(known.word, word)) return known.dtype;
  }
  return Fail(Blame::kCaller,
              "'{}' is no type of a KV cache: auto, bfloat16, float16, float32, fp8, fp8_e4m3, "
              "fp8_e5m2, int8, mxfp8, nvfp4 or fp8_ds_mla",
              word.substr(0, 64));
}

}  // namespace fathom
