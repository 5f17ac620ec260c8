#include "manifest/engine_file.h"

#include <algorithm>

#include "manifest/foothold.h"

namespace fathom {
namespace {

struct KnownKey {
  std::string_view name;  // with -
  Identity identity;
};
constexpr Identity kTrtllm = {ProgramRole::kEngine, EngineKind::kTrtllm, false};
constexpr Identity kVllm = {ProgramRole::kEngine, EngineKind::kVllm, false};
constexpr Identity kSglang = {ProgramRole::kEngine, EngineKind::kSglang, false};
constexpr Identity kFathom = {ProgramRole::kFathom, EngineKind::kUnknown, false};
// Those that only one of them has.
constexpr KnownKey kKnownKeys[] = {
    {"kv-cache-config", kTrtllm},
    {"cuda-graph-config", kTrtllm},
    {"moe-config", kTrtllm},
    {"enable-iter-perf-stats", kTrtllm},
    {"enable-attention-dp", kTrtllm},
    {"block-size", kVllm},
    {"gpu-memory-utilization", kVllm},
    {"enable-prefix-caching", kVllm},
    {"max-num-batched-tokens", kVllm},
    {"no-enable-prefix-caching", kVllm},
    {"page-size", kSglang},
    {"mem-fraction-static", kSglang},
    {"disable-radix-cache", kSglang},
    {"model-path", kSglang},
    {"workers", kFathom},
    {"kv-cache-block-size", kFathom},
    {"router-mode", kFathom},
    {"block-size-conflict", kFathom},
    {"kv-events-config", kVllm},
};

void Flatten(const YamlNode& node, const std::string& name, std::vector<Written>& keys) {
  if (keys.size() >= EngineFile::kMaxKeys) return;
  if (node.kind == YamlNode::Kind::kNull) keys.push_back({name, {}, node.place(), std::nullopt});
  if (node.scalar()) keys.push_back({name, node.text, node.place(), node.span()});
  for (const YamlNode* item : node.items) Flatten(*item, name, keys);
  for (const YamlNode::Entry& entry : node.entries) {
    if (!entry.key->scalar()) continue;
    Flatten(*entry.value, name.empty() ? entry.key->text : name + "." + entry.key->text, keys);
  }
}

}  // namespace

EngineFile ReadEngineFile(const YamlNode& map) {
  EngineFile file;
  Flatten(map, "", file.keys);
  file.foothold = FootholdIn(map, Foothold::Form::kYamlKeys);
  return file;
}

Identity IdentityOfKeys(const std::vector<std::string_view>& top_level) {
  for (const KnownKey& known : kKnownKeys) {
    const bool there = std::ranges::any_of(top_level, [&](std::string_view key) {
      return std::ranges::equal(key, known.name,
                                [](char a, char b) { return a == b || (a == '_' && b == '-'); });
    });
    if (there) return known.identity;
  }
  return {};
}

Identity IdentityOfEngineFile(const YamlNode& map) {
  std::vector<std::string_view> keys;
  for (const YamlNode::Entry& entry : map.entries) {
    if (entry.key->scalar()) keys.push_back(entry.key->text);
  }
  return IdentityOfKeys(keys);
}

}  // namespace fathom
