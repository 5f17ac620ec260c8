#include "diagnose/sizing/layer_kinds.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace fathom {
namespace {

using Kinds = std::optional<std::vector<LayerKind>>;

struct KindWord {
  std::string_view word;
  LayerKind kind;
};

constexpr KindWord kKindWords[] = {
    {"full_attention", LayerKind::kFull},
    {"attention", LayerKind::kFull},
    {"hybrid", LayerKind::kFull},
    {"global", LayerKind::kFull},
    {"sliding_attention", LayerKind::kWindow},
    {"chunked_attention", LayerKind::kWindow},
    {"sliding_window", LayerKind::kWindow},
    {"local", LayerKind::kWindow},
    {"linear_attention", LayerKind::kState},
    {"mamba", LayerKind::kState},
    {"mamba2", LayerKind::kState},
    {"conv", LayerKind::kState},
    {"recurrent", LayerKind::kState},
    {"mlp", LayerKind::kState},
    {"moe", LayerKind::kState},
};

std::optional<LayerKind> KindOf(const Json& entry) {
  if (const std::string* text = entry.string()) {
    for (const KindWord& known : kKindWords) {
      if (*text == known.word) return known.kind;
    }
  }
  return std::nullopt;
}

// layer_types, layers_block_type: a word for each layer.
Result<Kinds> FromWords(const ConfigFields& fields, std::string_view name, uint64_t count) {
  const Json* found = fields.Find(name);
  if (!found) return std::nullopt;
  const Json::Array* entries = found->array();
  if (!entries || entries->size() < count) {
    return Fail(Blame::kCaller, "{} must have a name for each of {} layers", name, count);
  }
  std::vector<LayerKind> kinds;
  for (uint64_t i = 0; i < count; ++i) {
    const auto kind = KindOf((*entries)[i]);
    if (!kind) return Fail(Blame::kCaller, "{}[{}] is an unknown kind of layer", name, i);
    kinds.push_back(*kind);
  }
  return kinds;
}

// attn_type_list, no_rope_layers: a number for each layer.
Result<Kinds> FromFlags(const ConfigFields& fields, std::string_view name, uint64_t count,
                        LayerKind zero, LayerKind other) {
  const Json* found = fields.Find(name);
  if (!found || !found->array() || found->array()->empty()) return std::nullopt;
  const Json::Array& entries = *found->array();
  if (entries.size() < count) {
    return Fail(Blame::kCaller, "{} must have a number for each of {} layers", name, count);
  }
  std::vector<LayerKind> kinds;
  for (uint64_t i = 0; i < count; ++i) {
    kinds.push_back(entries[i].number() == 0 ? zero : other);
  }
  return kinds;
}

// "M-M*-": a letter for each layer, and only the asterisk is attention.
Result<Kinds> FromLetters(const ConfigFields& fields, uint64_t count) {
  const Json* found = fields.Find("hybrid_override_pattern");
  if (!found || !found->string()) return std::nullopt;
  const std::string& letters = *found->string();
  if (letters.size() < count) {
    return Fail(Blame::kCaller, "hybrid_override_pattern must have a letter for each of {} layers",
                count);
  }
  std::vector<LayerKind> kinds;
  for (uint64_t i = 0; i < count; ++i) {
    kinds.push_back(letters[i] == '*' ? LayerKind::kFull : LayerKind::kState);
  }
  return kinds;
}

// Attention at these layers, a state at the others.
Kinds FromIndices(const ConfigFields& fields, uint64_t count) {
  const Json* found = fields.Find("attn_layer_indices");
  if (!found || !found->array()) return std::nullopt;
  std::vector<LayerKind> kinds(count, LayerKind::kState);
  for (const Json& index : *found->array()) {
    const auto at = index.unsigned_integer();
    if (at && *at < count) kinds[*at] = LayerKind::kFull;
  }
  return kinds;
}

// Layers `offset`, `offset + period`, ... are full, the others of kind `other`.
std::vector<LayerKind> Periodic(uint64_t count, uint64_t period, uint64_t offset, LayerKind other) {
  std::vector<LayerKind> kinds(count, other);
  for (uint64_t i = offset; i < count; i += period) kinds[i] = LayerKind::kFull;
  return kinds;
}

Result<Kinds> StatePeriod(const ConfigFields& fields, uint64_t count) {
  TRY(const auto interval, fields.Number({"full_attention_interval"}));
  if (interval && *interval > 0) {
    return Periodic(count, *interval, *interval - 1, LayerKind::kState);
  }
  TRY(const auto period, fields.Number({"attn_layer_period"}));
  TRY(const auto offset, fields.Number({"attn_layer_offset"}));
  if (period && *period > 0) {
    return Periodic(count, *period, offset.value_or(0), LayerKind::kState);
  }
  const std::string type = fields.Text({"model_type"});
  if (type == "mamba" || type == "mamba2" || type == "falcon_mamba") {
    return std::vector<LayerKind>(count, LayerKind::kState);
  }
  return std::nullopt;
}

Result<Kinds> States(const ConfigFields& fields, uint64_t count) {
  TRY(Kinds kinds, FromWords(fields, "layers_block_type", count));
  if (kinds) return kinds;
  TRY(kinds, FromFlags(fields, "attn_type_list", count, LayerKind::kState, LayerKind::kFull));
  if (kinds) return kinds;
  TRY(kinds, FromLetters(fields, count));
  if (kinds) return kinds;
  kinds = FromIndices(fields, count);
  if (kinds) return kinds;
  return StatePeriod(fields, count);
}

// Without a list of layers, the type of the model says where its windows are.
Result<std::vector<LayerKind>> Windows(const ConfigFields& fields, uint64_t count) {
  TRY(const auto chunked,
      FromFlags(fields, "no_rope_layers", count, LayerKind::kFull, LayerKind::kWindow));
  if (chunked) return *chunked;
  const std::string type = fields.Text({"model_type"});
  TRY(const auto pattern, fields.Number({"sliding_window_pattern", "_sliding_window_pattern"}));
  uint64_t period = pattern.value_or(0);
  if (period == 0 && type.starts_with("gemma3")) period = 6;
  if (period == 0 && type.starts_with("cohere2")) period = 4;
  if (period == 0 && type.starts_with("llama4")) period = 4;
  if (period == 0 && (type == "gemma2" || type == "gpt_oss")) period = 2;
  if (period > 0) return Periodic(count, period, period - 1, LayerKind::kWindow);

  TRY(const auto full_first, fields.Number({"max_window_layers"}));
  std::vector<LayerKind> kinds(count, LayerKind::kWindow);
  std::fill_n(kinds.begin(), std::min(count, full_first.value_or(0)), LayerKind::kFull);
  return kinds;
}

Result<uint64_t> WindowOf(const ConfigFields& fields) {
  if (!fields.Flag("use_sliding_window", true)) return 0;
  TRY(const auto window, fields.Number({"sliding_window", "sliding_window_size",
                                        "attention_chunk_size", "window_size"}));
  return window.value_or(0);
}

}  // namespace

Result<LayerKinds> ReadLayerKinds(const ConfigFields& fields) {
  TRY(const uint64_t count,
      fields.Needed({"num_hidden_layers", "n_layer", "n_layers", "num_layers"},
                    ModelShape::kMaxLayers));
  TRY(const uint64_t window, WindowOf(fields));
  LayerKinds result{.layers = {}, .window = static_cast<uint32_t>(window)};
  TRY(Kinds kinds, FromWords(fields, "layer_types", count));
  if (!kinds) {
    TRY(kinds, States(fields, count));
  }
  if (kinds) {
    result.layers = *std::move(kinds);
  } else if (window > 0) {
    TRY(result.layers, Windows(fields, count));
  } else {
    result.layers.assign(count, LayerKind::kFull);
  }
  const bool has_windows = std::ranges::count(result.layers, LayerKind::kWindow) > 0;
  // A list may name windows that a switch has turned off.
  if (has_windows && window == 0) {
    std::ranges::replace(result.layers, LayerKind::kWindow, LayerKind::kFull);
  }
  if (!has_windows) result.window = 0;
  return result;
}

}  // namespace fathom
