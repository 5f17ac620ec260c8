#include "diagnose/manifest/helm_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "diagnose/manifest/engine_file.h"
#include "diagnose/manifest/foothold.h"

namespace fathom {
namespace {

const YamlNode* FirstOf(const YamlNode& map, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const YamlNode* found = map.Find(key)) return found;
  }
  return nullptr;
}

// image: x/y:tag, image: {repository, tag}, or repository and tag beside each other.
std::string ImageOf(const YamlNode& map) {
  const YamlNode* image = map.Find("image");
  if (image != nullptr && image->scalar()) return image->text;
  const YamlNode& parts = image == nullptr ? map : *image;
  std::string name(parts.TextOf("repository"));
  if (name.empty() && image != nullptr) name = parts.TextOf("name");
  if (!parts.TextOf("registry").empty())
    name = fmt::format("{}/{}", parts.TextOf("registry"), name);
  const std::string_view tag = parts.TextOf("tag");
  return tag.empty() || name.empty() ? name : fmt::format("{}:{}", name, tag);
}

// enablePrefixCaching as an engine calls it: enable-prefix-caching.
std::string InWords(std::string_view camel) {
  std::string words;
  for (const char c : camel) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0) words.push_back('-');
    words.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return words;
}

ContainerParts PartsOf(const YamlNode& map, const YamlNode* engine) {
  ContainerParts parts;
  parts.home = &map;
  parts.image = ImageOf(map);
  parts.command = map.Find("command");
  parts.arguments = FirstOf(map, {"args", "extraArgs"});
  if (engine != nullptr && engine->Find("extraArgs") != nullptr) {
    parts.arguments = engine->Find("extraArgs");
  }
  parts.environments = {map.Find("env"), map.Find("extraEnv"), map.Find("extraEnvVars")};
  return parts;
}

bool LooksLikeContainer(const YamlNode& map) {
  constexpr std::string_view kParts[] = {"args",     "command",      "env",       "extraArgs",
                                         "extraEnv", "extraEnvVars", "vllmConfig"};
  if (ImageOf(map).empty()) return false;
  return std::ranges::any_of(kParts,
                             [&](std::string_view key) { return map.Find(key) != nullptr; });
}

class ValuesWalker {
 public:
  ValuesWalker(std::string graph, Collection& out) : graph_(std::move(graph)), out_(out) {}

  void Walk(const YamlNode& node, const std::string& path) {
    if (node.map() && LooksLikeContainer(node)) {
      Take(node, path);
      return;
    }
    for (const YamlNode::Entry& entry : node.entries) {
      if (!entry.key->scalar()) continue;
      Walk(*entry.value, path.empty() ? entry.key->text : path + "." + entry.key->text);
    }
    for (size_t i = 0; i < node.items.size(); ++i) {
      if (node.items[i]->map()) Walk(*node.items[i], fmt::format("{}[{}]", path, i));
    }
  }

 private:
  void Take(const YamlNode& map, const std::string& path) {
    const YamlNode* engine = map.Find("vllmConfig");
    Draft draft;
    Program& program = draft.program;
    program.name = path.empty() ? graph_ : path;
    program.graph = graph_;
    program.place = map.place();
    const std::string_view replicas =
        map.TextOf("replicas").empty() ? map.TextOf("replicaCount") : map.TextOf("replicas");
    program.replicas =
        static_cast<uint32_t>(std::min<uint64_t>(ParseDecimal(replicas).value_or(1), 1'000'000));
    if (engine != nullptr) {
      EngineFile file = ReadEngineFile(*engine);
      for (Written& key : file.keys) key.name = InWords(key.name);
      program.keys = std::move(file.keys);
    }
    if (!map.TextOf("modelURL").empty()) {
      const YamlNode& model = *map.Find("modelURL");
      program.keys.push_back({"model", model.text, model.place(), model.span()});
    }
    out_.Add(DraftsOf(PartsOf(map, engine), draft));
  }

  const std::string graph_;
  Collection& out_;
};

}  // namespace

void CollectHelmValues(const YamlNode& document, const std::string& graph, Collection& out) {
  ValuesWalker(graph, out).Walk(document, "");
}

}  // namespace fathom
