#include "diagnose/manifest/dynamo_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "diagnose/manifest/kubernetes.h"

namespace fathom {
namespace {

// What the services of one graph have in common.
struct Graph {
  std::string name;
  std::string network_namespace;
  EngineKind engine = EngineKind::kUnknown;  // backendFramework
  const YamlNode* environment = nullptr;
};

std::string_view TypeOf(const YamlNode& service) {
  const std::string_view type = service.TextOf("componentType");
  return type.empty() ? service.TextOf("type") : type;
}

// What a service is where its command does not say.
Identity IdentityOfType(std::string_view name, const YamlNode& service, EngineKind engine) {
  constexpr std::string_view kWorkers[] = {"worker", "main", "prefill", "decode"};
  const std::string_view type = TypeOf(service);
  if (type == "frontend" || (type.empty() && name.contains("rontend"))) {
    return {ProgramRole::kDynamoFrontend, EngineKind::kUnknown, true};
  }
  const bool worker = std::ranges::find(kWorkers, type) != std::end(kWorkers) ||
                      (type.empty() && name.contains("orker"));
  return worker ? Identity{ProgramRole::kEngine, engine, true} : Identity{};
}

Duty DutyOfType(const YamlNode& service) {
  for (const std::string_view type : {service.TextOf("subComponentType"), TypeOf(service)}) {
    if (type == "prefill") return Duty::kPrefill;
    if (type == "decode") return Duty::kDecode;
  }
  return Duty::kBoth;
}

// The container that the operator runs; nullptr where the file leaves it to the operator.
const YamlNode* MainContainer(const YamlNode& service) {
  if (const YamlNode* main = service.Find("extraPodSpec", "mainContainer")) return main;
  const YamlNode* containers = service.Find("podTemplate", "spec", "containers");
  if (containers == nullptr) return nullptr;
  for (const YamlNode* container : containers->items) {
    if (container->TextOf("name") == "main") return container;
  }
  return containers->items.empty() ? nullptr : containers->items.front();
}

ContainerParts ComponentParts(const YamlNode& service, const YamlNode* main, const Graph& graph) {
  const YamlNode* envs = service.Find("envs");
  ContainerParts parts = fathom::PartsOf(main == nullptr ? service : *main);
  // A variable is added where the file has its variables already, or beside the component's type.
  const YamlNode* own = main == nullptr ? nullptr : main->Find("env");
  parts.environments = {graph.environment, own, envs};
  if (envs == nullptr) parts.environments = {graph.environment, own};
  if (own == nullptr && envs == nullptr) parts.environments = {};
  const bool beta = service.Find("podTemplate") != nullptr;
  parts.environment_home = beta ? main : &service;
  parts.environment_key = beta ? "env" : "envs";
  // The operator has a command line of its own, which arguments alone would replace.
  parts.arguments_key = "";
  return parts;
}

void CollectComponent(std::string_view name, const FilePlace& place, const YamlNode& service,
                      const Graph& graph, Collection& out) {
  if (!service.map()) return;
  const YamlNode* main = MainContainer(service);
  Draft draft;
  Program& program = draft.program;
  program.name = name;
  program.graph = graph.name;
  program.network_namespace = graph.network_namespace;
  program.place = place;
  program.duty = DutyOfType(service);
  program.replicas = static_cast<uint32_t>(
      std::min<uint64_t>(ParseDecimal(service.TextOf("replicas")).value_or(1), 1'000'000));
  ContainerParts parts = ComponentParts(service, main, graph);
  // The graph's own list is nobody's to add to.
  if (parts.environments.empty() && graph.environment != nullptr) {
    program.variables = VariablesOf(*graph.environment);
  }
  parts.otherwise = IdentityOfType(name, service, graph.engine);
  const YamlNode* pod = service.Find("extraPodSpec");
  if (pod == nullptr) pod = service.Find("podTemplate", "spec");
  AddPodSettings(pod, main == nullptr ? service : *main, draft);

  std::vector<Draft> drafts = DraftsOf(parts, draft);
  for (Draft& each : drafts) {
    each.program.dynamo = true;
    if (each.program.engine == EngineKind::kUnknown) each.program.engine = graph.engine;
  }
  out.Add(std::move(drafts));
}

void CollectServices(const YamlNode& services, const Graph& graph, Collection& out) {
  for (const YamlNode::Entry& entry : services.entries) {
    if (!entry.key->scalar()) continue;
    CollectComponent(entry.key->text, entry.key->place(), *entry.value, graph, out);
  }
  for (const YamlNode* item : services.items) {
    CollectComponent(item->TextOf("name"), item->place(), *item, graph, out);
  }
}

bool IsService(const YamlNode& node) {
  constexpr std::string_view kKeys[] = {"componentType", "extraPodSpec", "envs", "podTemplate",
                                        "dynamoNamespace"};
  return std::ranges::any_of(kKeys,
                             [&](std::string_view key) { return node.Find(key) != nullptr; });
}

bool HasServices(const YamlNode* services) {
  if (services == nullptr) return false;
  const bool mapped = std::ranges::any_of(
      services->entries, [](const YamlNode::Entry& entry) { return IsService(*entry.value); });
  return mapped || std::ranges::any_of(services->items,
                                       [](const YamlNode* item) { return IsService(*item); });
}

const YamlNode* ServicesOf(const YamlNode& spec) {
  const YamlNode* services = spec.Find("services");
  return services != nullptr ? services : spec.Find("components");
}

// Of the part of a fragment that has services: under spec:, under services:, or by itself.
const YamlNode* ServicesOfFragment(const YamlNode& document) {
  const YamlNode* spec = document.Find("spec");
  const YamlNode* services = ServicesOf(spec == nullptr ? document : *spec);
  if (HasServices(services)) return services;
  return HasServices(&document) ? &document : nullptr;
}

Graph GraphOf(const YamlNode& spec) {
  Graph graph;
  graph.engine = EngineNamed(spec.TextOf("backendFramework"));
  graph.environment = spec.Find("envs");
  if (graph.environment == nullptr) graph.environment = spec.Find("env");
  return graph;
}

}  // namespace

void CollectDynamoGraph(const YamlNode& object, Collection& out) {
  const YamlNode* spec = object.Find("spec");
  const YamlNode* services = spec == nullptr ? nullptr : ServicesOf(*spec);
  if (services == nullptr) return;
  Graph graph = GraphOf(*spec);
  graph.name = fmt::format("DynamoGraphDeployment {}", QualifiedName(object));
  if (const YamlNode* metadata = object.Find("metadata")) {
    graph.network_namespace = metadata->TextOf("namespace");
  }
  CollectServices(*services, graph, out);
}

bool IsDynamoFragment(const YamlNode& document) {
  return document.map() && ServicesOfFragment(document) != nullptr;
}

void CollectDynamoFragment(const YamlNode& document, const std::string& name, Collection& out) {
  const YamlNode* spec = document.Find("spec");
  Graph graph = GraphOf(spec == nullptr ? document : *spec);
  graph.name = name;
  CollectServices(*ServicesOfFragment(document), graph, out);
}

}  // namespace fathom
