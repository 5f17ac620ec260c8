#include "diagnose/sizing/weight_type.h"

#include <string>

#include "base/text.h"

namespace fathom {
namespace {

// With the scales that stand beside the numbers.
constexpr double kFp8Bytes = 1.0;
constexpr double kInt4Bytes = 0.5 + 2.5 / 128;  // a scale and a zero point for every 128
constexpr double kNvfp4Bytes = 0.5 + 1.0 / 16;
constexpr double kMxfp4Bytes = 0.5 + 1.0 / 32;

bool Mentions(const std::string& text, std::string_view word) {
  for (size_t at = 0; at + word.size() <= text.size(); ++at) {
    if (EqualsIgnoreCase(std::string_view(text).substr(at, word.size()), word)) return true;
  }
  return false;
}

std::string TextOf(const Json& object, std::string_view name) {
  const Json* found = object.Find(name);
  return found && found->string() ? found->string()->substr(0, 64) : "";
}

double BitsOf(const Json* weights) {
  const Json* bits = weights ? weights->Find("num_bits") : nullptr;
  return bits ? bits->number().value_or(0) : 0;
}

// compressed-tensors: groups of layers, the first stands for all.
double GroupBits(const Json& quantization) {
  const Json* groups = quantization.Find("config_groups");
  if (!groups || !groups->object() || groups->object()->empty()) return 0;
  return BitsOf(groups->object()->front().second.Find("weights"));
}

double BytesOfBits(double bits) {
  if (bits == 4) return kInt4Bytes;
  return bits >= 1 && bits <= 32 ? bits / 8 : 0;
}

// 0: not known.
double QuantizedBytes(const Json& quantization, const std::string& method) {
  const std::string algorithm = TextOf(quantization, "quant_algo") + TextOf(quantization, "format");
  if (Mentions(algorithm, "nvfp4")) return kNvfp4Bytes;
  if (Mentions(algorithm, "mxfp4") || Mentions(method, "mxfp4")) return kMxfp4Bytes;
  if (Mentions(algorithm, "fp8") || Mentions(method, "fp8")) return kFp8Bytes;
  if (const double bits = GroupBits(quantization); bits > 0) return BytesOfBits(bits);
  const Json* bits = quantization.Find("bits");
  if (bits && bits->number()) return BytesOfBits(*bits->number());
  const Json* four = quantization.Find("load_in_4bit");
  if (four && four->boolean() && *four->boolean()) return kInt4Bytes;
  const Json* eight = quantization.Find("load_in_8bit");
  if (eight && eight->boolean() && *eight->boolean()) return 1;
  return 0;
}

// A checkpoint that carries scales for its cache is meant to be served with it.
std::optional<KvDtype> CacheType(const Json& quantization) {
  const std::string algorithm = TextOf(quantization, "kv_cache_quant_algo");
  if (Mentions(algorithm, "nvfp4")) return KvDtype::kNvfp4;
  if (Mentions(algorithm, "fp8")) return KvDtype::kFp8;
  if (Mentions(algorithm, "int8")) return KvDtype::kInt8;
  const Json* scheme = quantization.Find("kv_cache_scheme");
  if (!scheme || BitsOf(scheme) != 8) return std::nullopt;
  return TextOf(*scheme, "type") == "int" ? KvDtype::kInt8 : KvDtype::kFp8;
}

}  // namespace

void ReadWeightType(const ConfigFields& fields, ModelShape& shape) {
  const std::string word = fields.Text({"torch_dtype", "dtype"});
  const auto dtype = ParseKvDtype(word.empty() ? "auto" : word);
  if (dtype && *dtype == KvDtype::kFloat16) shape.dtype = KvDtype::kFloat16;
  shape.stored_wide = dtype && *dtype == KvDtype::kFloat32;
  shape.dense_bytes_per_parameter = shape.expert_bytes_per_parameter = BytesPerElement(shape.dtype);

  const Json* quantization = fields.Find("quantization_config");
  if (!quantization || !quantization->object()) return;
  const std::string method = TextOf(*quantization, "quant_method");
  const std::string algorithm = TextOf(*quantization, "quant_algo");
  shape.quantization = algorithm.empty() ? method : algorithm;
  shape.kv_dtype = CacheType(*quantization);
  const double bytes = QuantizedBytes(*quantization, method);
  if (bytes == 0) return;
  shape.expert_bytes_per_parameter = bytes;
  // Released so: experts in mxfp4, the rest as it was.
  const bool experts_only = method == "mxfp4";
  if (!experts_only) shape.dense_bytes_per_parameter = bytes;
}

}  // namespace fathom
