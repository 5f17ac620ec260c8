#include "diagnose/manifest/compose_file.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "diagnose/manifest/arguments.h"

namespace fathom {
namespace {

// "8000", "8000:8000", "127.0.0.1:8000:8000/tcp": the last number is the container's.
void AddPorts(const YamlNode& service, Program& program) {
  const YamlNode* ports = service.Find("ports");
  if (ports == nullptr) return;
  for (const YamlNode* item : ports->items) {
    std::string_view text = item->scalar() ? std::string_view(item->text) : item->TextOf("target");
    text = text.substr(0, text.find('/'));
    text = text.substr(text.rfind(':') + 1);
    const auto port = ParseDecimal(text);
    if (port && *port > 0 && *port <= 65535) {
      program.ports.push_back({{}, static_cast<uint16_t>(*port), item->place()});
    }
  }
}

std::string_view DeployOf(const YamlNode& service, std::string_view key) {
  const YamlNode* deploy = service.Find("deploy");
  return deploy == nullptr ? std::string_view() : deploy->TextOf(key);
}

uint32_t ReplicasOf(const YamlNode& service) {
  auto replicas = ParseDecimal(DeployOf(service, "replicas"));
  if (!replicas) replicas = ParseDecimal(service.TextOf("scale"));
  return static_cast<uint32_t>(std::min<uint64_t>(replicas.value_or(1), 1'000'000));
}

std::map<std::string, std::string> SelectorOf(const YamlNode& name) {
  return {{"com.docker.compose.service", name.text}};
}

void CollectService(const YamlNode& name, const YamlNode& service, const std::string& graph,
                    Collection& out) {
  ContainerParts parts;
  parts.home = &service;
  parts.image = Expanded(service.TextOf("image"), {});
  parts.command = service.Find("entrypoint");
  parts.arguments = service.Find("command");
  parts.environments = {service.Find("environment")};
  parts.environment_key = "environment";
  parts.arguments_key = "command";
  parts.missing_environment = Foothold::Form::kYamlEnvMap;
  Draft draft;
  draft.program.name = "service " + name.text;
  draft.program.graph = graph;
  draft.program.place = name.place();
  draft.program.host_network = service.TextOf("network_mode") == "host";
  draft.program.labels = SelectorOf(name);
  draft.program.replicas = ReplicasOf(service);
  draft.program.per_node = DeployOf(service, "mode") == "global";
  AddPorts(service, draft.program);
  out.Add(DraftsOf(parts, draft));
  // The name of a service is all of its containers to those who look it up again and again.
  NamedService named;
  named.name = name.text;
  named.headless = named.compose = true;
  named.selector = SelectorOf(name);
  named.place = name.place();
  out.services.push_back(std::move(named));
}

}  // namespace

bool IsComposeFile(const YamlNode& document) {
  const YamlNode* services = document.Find("services");
  if (services == nullptr) return false;
  return std::ranges::any_of(services->entries, [](const YamlNode::Entry& entry) {
    return entry.value->Find("image") != nullptr || entry.value->Find("build") != nullptr ||
           entry.value->Find("command") != nullptr;
  });
}

void CollectCompose(const YamlNode& document, const std::string& graph, Collection& out) {
  for (const YamlNode::Entry& entry : document.Find("services")->entries) {
    if (!entry.key->scalar() || !entry.value->map()) continue;
    CollectService(*entry.key, *entry.value, graph, out);
  }
}

}  // namespace fathom
