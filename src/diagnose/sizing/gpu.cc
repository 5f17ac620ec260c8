#include "diagnose/sizing/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "diagnose/sizing/binary_units.h"

namespace fathom {
namespace {

struct Model {
  std::string_view name;
  std::string_view word;  // its words without what is between them: "rtx4090"
  std::string_view also;  // another word that must be there; empty: none
  uint64_t installed;     // MiB, nvidia-smi's total
  double visible;         // GiB, a program's total
};

// The first that fits is meant: variants with a word of their own before the others, and among
// those that differ by size the usual one first.
constexpr Model kModels[] = {
    {"H100-NVL", "h100", "nvl", 95830, 93.1},
    {"H100-80GB", "h100", "", 81559, 79.1},
    {"H100-64GB", "h100", "", 65247, 63.3},
    {"H100-96GB", "h100", "", 97871, 94.5},
    {"H200", "h200", "", 143771, 139.8},
    {"B200", "b200", "", 183359, 178.4},
    {"B300", "b300", "", 275040, 266.7},
    {"GB200", "gb200", "", 189471, 184.0},
    {"GB300", "gb300", "", 284208, 275.5},
    // The 480 are those of its CPU.
    {"GH200-96GB", "gh200", "480gb", 97871, 94.5},
    {"GH200-96GB", "gh200", "", 97871, 94.5},
    {"GH200-144GB", "gh200", "", 147456, 142.9},
    {"H20-96GB", "h20", "", 97871, 95.1},
    {"H20-141GB", "h20", "", 143771, 139.8},
    {"H800-80GB", "h800", "", 81559, 79.1},
    {"A100-80GB", "a100", "", 81920, 79.2},
    {"A100-40GB", "a100", "", 40960, 39.4},
    {"A800-80GB", "a800", "", 81920, 79.2},
    {"L40S", "l40s", "", 46068, 44.4},
    {"L40", "l40", "", 46068, 44.4},
    {"L4", "l4", "", 23034, 22.0},
    {"A10G", "a10g", "", 23028, 22.1},
    {"A10", "a10", "", 23028, 22.0},
    {"A40", "a40", "", 46068, 44.4},
    {"A30", "a30", "", 24576, 23.5},
    {"T4", "t4", "", 15360, 14.6},
    {"V100-32GB", "v100", "", 32768, 31.7},
    {"V100-16GB", "v100", "", 16384, 15.8},
    {"RTX-PRO-6000", "rtxpro6000", "", 97887, 95.0},
    {"RTX-6000-ADA", "rtx6000", "ada", 49140, 47.4},
    {"RTX-A6000", "rtxa6000", "", 49140, 47.4},
    {"RTX-A6000", "a6000", "", 49140, 47.4},
    {"RTX-5090", "rtx5090", "", 32607, 31.4},
    {"RTX-4090", "rtx4090", "", 24564, 23.5},
    {"RTX-3090", "rtx3090", "", 24576, 23.6},
    {"MI355X", "mi355x", "", 294896, 287.6},
    {"MI325X", "mi325x", "", 262128, 255.7},
    {"MI300X", "mi300x", "", 196592, 191.7},
    {"MI250X", "mi250x", "", 65520, 63.9},
};

struct SizeUnit {
  std::string_view name;
  double bytes;
};
constexpr SizeUnit kUnits[] = {{"B", 1},      {"MB", 1e6},  {"GB", 1e9},         {"MiB", kMiB},
                               {"GiB", kGiB}, {"TB", 1e12}, {"TiB", 1024 * kGiB}};

constexpr size_t kMaxText = 256;
constexpr double kSmallest = kGiB / 2;
constexpr double kLargest = 4096 * kGiB;

// A size, if that is what it looks like: begins with a digit and ends with a unit or none.
std::optional<double> ParseSize(std::string_view text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  const std::string_view unit = Trim(text.substr(static_cast<size_t>(end - text.data())));
  if (unit.empty()) return number;
  for (const SizeUnit& known : kUnits) {
    if (EqualsIgnoreCase(known.name, unit)) return number * known.bytes;
  }
  return std::nullopt;
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')) {
      words.back() += c;
    } else if (c >= 'A' && c <= 'Z') {
      words.back() += static_cast<char>(c - 'A' + 'a');
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

bool Has(const std::vector<std::string>& words, std::string_view word) {
  return word.empty() || std::ranges::find(words, word) != words.end();
}

// As one word, or as several that follow each other.
bool HasTogether(const std::vector<std::string>& words, std::string_view name) {
  for (size_t first = 0; first < words.size(); ++first) {
    std::string together;
    for (size_t i = first; i < words.size() && together.size() < name.size(); ++i) {
      together += words[i];
      if (together == name) return true;
    }
  }
  return false;
}

// "80gb" agrees with 81559 MiB; vendors count in both kinds of GB, and round.
bool SizesAgree(const std::vector<std::string>& words, const Model& model) {
  for (const std::string& word : words) {
    if (!word.ends_with("gb")) continue;
    const auto size = ParseDecimal(std::string_view(word).substr(0, word.size() - 2));
    if (!size) continue;
    const double installed = static_cast<double>(model.installed) / 1024;
    return std::abs(static_cast<double>(*size) - installed) < installed * 0.1;
  }
  return true;
}

const Model* FindModel(std::string_view text) {
  const std::vector<std::string> words = WordsOf(text);
  for (const Model& model : kModels) {
    if (!HasTogether(words, model.word) || !Has(words, model.also)) continue;
    if (model.also == "480gb" || SizesAgree(words, model)) return &model;
  }
  return nullptr;
}

Gpu Known(const Model& model) {
  const auto visible = static_cast<uint64_t>(model.visible * kGiB);
  return {
      .name = std::string(model.name),
      .installed = model.installed << 20,  // from MiB
      .visible = visible,
      .basis = fmt::format("{:.1f} GiB that a program sees of an {}", model.visible, model.name)};
}

Result<Gpu> OfSize(std::string_view text, double bytes) {
  if (bytes < kSmallest || bytes > kLargest) {
    return Fail(Blame::kCaller, "'{}' is not a GPU memory size; write a size such as 80GiB", text);
  }
  const auto size = static_cast<uint64_t>(bytes);
  return Gpu{.name = "",
             .installed = size,
             .visible = size,
             .basis = fmt::format("{:.1f} GiB as given", bytes / kGiB)};
}

}  // namespace

Result<Gpu> ParseGpu(std::string_view text) {
  text = Trim(text).substr(0, kMaxText);
  if (const auto size = ParseSize(text)) return OfSize(text, *size);
  if (Has(WordsOf(text), "mig")) {
    return Fail(Blame::kCaller, "'{}' is a slice of a GPU; give its memory as a size", text);
  }
  if (const Model* model = FindModel(text)) return Known(*model);
  const auto names = KnownGpus();
  const auto nearest = Nearest(text, names);
  return Fail(Blame::kCaller, "the GPU '{}' is unknown{}; give its memory as a size (80GiB)", text,
              nearest ? fmt::format(", did you mean {}", *nearest) : "");
}

Gpu MeasuredGpu(std::string_view name, uint64_t installed, std::optional<uint64_t> visible) {
  name = name.substr(0, kMaxText);
  const Model* model = FindModel(name);
  const double total = static_cast<double>(installed) / kGiB;
  const bool partly = visible && *visible > 0 && *visible < installed;
  const std::string share =
      partly ? fmt::format("{:.2f} GiB used or free of the ", static_cast<double>(*visible) / kGiB)
             : std::string();
  return {.name = model ? std::string(model->name) : std::string(name),
          .installed = installed,
          .visible = partly ? *visible : installed,
          .basis = fmt::format("{}{:.2f} GiB that were measured", share, total)};
}

std::vector<std::string_view> KnownGpus() {
  std::vector<std::string_view> names;
  for (const Model& model : kModels) {
    if (names.empty() || names.back() != model.name) names.push_back(model.name);
  }
  return names;
}

}  // namespace fathom
