#include "diagnose/sizing/config_fields.h"

namespace fathom {
namespace {

constexpr std::string_view kParts[] = {"text_config", "llm_config", "language_config",
                                       "thinker_config"};
constexpr std::string_view kLayerNames[] = {"num_hidden_layers", "n_layer", "n_layers",
                                            "num_layers"};

bool HasLayers(const Json& object) {
  for (const std::string_view name : kLayerNames) {
    const Json* found = object.Find(name);
    if (found && !found->is_null()) return true;
  }
  return false;
}

// Parts may have parts; the language is never deeper than two.
const Json* LanguagePart(const Json& object, int depth) {
  for (const std::string_view name : kParts) {
    const Json* part = object.Find(name);
    if (!part || !part->object()) continue;
    if (HasLayers(*part)) return part;
    if (depth == 0) continue;
    if (const Json* inner = LanguagePart(*part, depth - 1)) return inner;
  }
  return nullptr;
}

std::string Shown(const Json& value) {
  constexpr size_t kLongest = 40;
  std::string text;
  value.WriteTo(text);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

}  // namespace

ConfigFields::ConfigFields(const Json& root) : root_(root), part_(LanguagePart(root, 1)) {
  if (!part_) part_ = &root_;
}

const Json* ConfigFields::Find(std::string_view name) const {
  for (const Json* object : {part_, &root_}) {
    const Json* found = object->Find(name);
    if (found && !found->is_null()) return found;
  }
  return nullptr;
}

Result<std::optional<uint64_t>> ConfigFields::Number(Names names, uint64_t most) const {
  for (const std::string_view name : names) {
    const Json* found = Find(name);
    if (!found) continue;
    const auto number = found->unsigned_integer();
    if (number && *number <= most) return number;
    return Fail(Blame::kCaller, "{} is {}, a number from 0 to {} is needed", name, Shown(*found),
                most);
  }
  return std::nullopt;
}

Result<uint64_t> ConfigFields::Needed(Names names, uint64_t most) const {
  TRY(const auto number, Number(names, most));
  if (number && *number > 0) return *number;
  return Fail(Blame::kCaller, "{} is {}; without it the KV cache size cannot be calculated",
              *names.begin(), number ? "0" : "missing");
}

std::string ConfigFields::Text(Names names) const {
  constexpr size_t kLongest = 128;
  for (const std::string_view name : names) {
    const Json* found = Find(name);
    if (found && found->string()) return found->string()->substr(0, kLongest);
  }
  return "";
}

bool ConfigFields::Flag(std::string_view name, bool fallback) const {
  const Json* found = Find(name);
  return found && found->boolean() ? *found->boolean() : fallback;
}

}  // namespace fathom
