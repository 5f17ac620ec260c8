#include "diagnose/manifest/engine_file.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "diagnose/manifest/foothold.h"

namespace fathom {
namespace {

// What a key says of a file: many programs have a "page-size", one alone has a "kv_cache_config".
enum class Weight : uint8_t { kSign = 1, kProof = 2 };
using enum Weight;

struct KnownKey {
  std::string_view name;  // with -
  Weight weight;
};
struct Owner {
  Identity identity;
  std::span<const KnownKey> keys;
};

constexpr Identity kTrtllmFile = {ProgramRole::kEngine, EngineKind::kTrtllm, false};
constexpr Identity kVllmFile = {ProgramRole::kEngine, EngineKind::kVllm, false};
constexpr Identity kSglangFile = {ProgramRole::kEngine, EngineKind::kSglang, false};
constexpr Identity kFathomFile = {ProgramRole::kFathom, EngineKind::kUnknown, false};

constexpr KnownKey kTrtllmKeys[] = {
    {"kv-cache-config", kProof},
    {"cuda-graph-config", kProof},
    {"moe-config", kSign},
    {"enable-iter-perf-stats", kProof},
    {"print-iter-log", kProof},
    {"enable-attention-dp", kProof},
    {"cache-transceiver-config", kProof},
};
constexpr KnownKey kSglangKeys[] = {
    {"mem-fraction-static", kProof},
    {"disable-radix-cache", kProof},
    {"chunked-prefill-size", kProof},
    {"kv-events-config", kSign},
    {"page-size", kSign},
    {"model-path", kSign},
    {"tp-size", kSign},
    {"dp-size", kSign},
};
constexpr KnownKey kVllmKeys[] = {
    {"kv-events-config", kProof},       {"gpu-memory-utilization", kProof},
    {"enable-prefix-caching", kProof},  {"no-enable-prefix-caching", kProof},
    {"max-num-batched-tokens", kProof}, {"block-size", kSign},
    {"max-model-len", kSign},           {"max-num-seqs", kSign},
    {"tensor-parallel-size", kSign},    {"served-model-name", kSign},
};
constexpr KnownKey kFathomKeys[] = {
    {"workers", kProof},    {"worker-urls", kProof},        {"kv-cache-block-size", kSign},
    {"router-mode", kSign}, {"block-size-conflict", kSign},
};
// The first one wins where two have the same signs.
constexpr Owner kOwners[] = {
    {kTrtllmFile, kTrtllmKeys},
    {kSglangFile, kSglangKeys},
    {kVllmFile, kVllmKeys},
    {kFathomFile, kFathomKeys},
};

bool SameKey(std::string_view key, std::string_view known) {
  return std::ranges::equal(key, known,
                            [](char a, char b) { return a == b || (a == '_' && b == '-'); });
}

int WeightOf(const Owner& owner, const std::vector<std::string_view>& keys) {
  int weight = 0;
  for (const KnownKey& known : owner.keys) {
    if (std::ranges::any_of(keys, [&](std::string_view key) { return SameKey(key, known.name); }))
      weight += static_cast<int>(known.weight);
  }
  return weight;
}

bool HasUrl(const YamlNode& node) {
  if (node.scalar()) return IsWorkerUrl(node.text);
  const YamlNode* url = node.map() ? node.Find("url") : nullptr;
  return url != nullptr && url->scalar() && IsWorkerUrl(url->text);
}

bool NamesWorkers(const YamlNode& value) {
  return HasUrl(value) ||
         std::ranges::any_of(value.items, [](const YamlNode* item) { return HasUrl(*item); });
}

std::vector<std::string_view> KeysOf(const YamlNode& map) {
  std::vector<std::string_view> keys;
  for (const YamlNode::Entry& entry : map.entries) {
    if (!entry.key->scalar()) continue;
    if (!IsWorkerKey(entry.key->text) || NamesWorkers(*entry.value))
      keys.push_back(entry.key->text);
  }
  return keys;
}

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

bool IsWorkerKey(std::string_view key) { return key == "workers" || SameKey(key, "worker-urls"); }

bool IsWorkerUrl(std::string_view text) {
  constexpr std::string_view kForms[] = {"http://",  "https://",    "dns+http://", "dns+https://",
                                         "k8s://",   "k8s-pods://", "k8s-pool://", "etcd://",
                                         "etcds://", "file://"};
  return std::ranges::any_of(kForms, [&](std::string_view form) { return text.starts_with(form); });
}

Identity IdentityOfKeys(const std::vector<std::string_view>& top_level) {
  const Owner* best = nullptr;
  int most = static_cast<int>(kProof) - 1;
  for (const Owner& owner : kOwners) {
    const int weight = WeightOf(owner, top_level);
    if (weight <= most) continue;
    best = &owner;
    most = weight;
  }
  return best == nullptr ? Identity{} : best->identity;
}

Identity IdentityOfEngineFile(const YamlNode& map) { return IdentityOfKeys(KeysOf(map)); }

bool MayBeEngineFile(const YamlNode& map) {
  const std::vector<std::string_view> keys = KeysOf(map);
  return std::ranges::any_of(kOwners,
                             [&](const Owner& owner) { return WeightOf(owner, keys) > 0; });
}

}  // namespace fathom
