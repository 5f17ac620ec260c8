#include "diagnose/manifest/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "diagnose/manifest/dynamo_graph.h"

namespace fathom {
namespace {

std::map<std::string, std::string> TextMap(const YamlNode* node) {
  std::map<std::string, std::string> texts;
  if (node == nullptr) return texts;
  for (const YamlNode::Entry& entry : node->entries) {
    if (entry.key->scalar() && entry.value->scalar()) texts[entry.key->text] = entry.value->text;
  }
  return texts;
}

template <class Number>
Number NumberIn(const YamlNode* node, Number otherwise) {
  if (node == nullptr || !node->scalar()) return otherwise;
  const auto number = ParseDecimal(node->text);
  return number && std::in_range<Number>(*number) ? static_cast<Number>(*number) : otherwise;
}

void AddContainerPorts(const YamlNode& container, Program& program) {
  const YamlNode* ports = container.Find("ports");
  if (ports == nullptr) return;
  for (const YamlNode* item : ports->items) {
    const YamlNode* port = item->Find("containerPort");
    const auto number = NumberIn<uint16_t>(port, 0);
    if (number == 0) continue;
    program.ports.push_back({std::string(item->TextOf("name")), number, port->place()});
  }
}

// Which ConfigMap a volume of the pod shows; empty: another kind of volume.
std::string MapOfVolume(const YamlNode* pod, std::string_view volume) {
  const YamlNode* volumes = pod == nullptr ? nullptr : pod->Find("volumes");
  if (volumes == nullptr) return {};
  for (const YamlNode* item : volumes->items) {
    const YamlNode* map = item->Find("configMap");
    if (item->TextOf("name") == volume && map != nullptr) return std::string(map->TextOf("name"));
  }
  return {};
}

void AddMounts(const YamlNode* pod, const YamlNode& container, Draft& draft) {
  const YamlNode* mounts = container.Find("volumeMounts");
  if (mounts == nullptr) return;
  for (const YamlNode* item : mounts->items) {
    std::string map = MapOfVolume(pod, item->TextOf("name"));
    if (map.empty() || draft.mounts.size() >= kMaxMounts) continue;
    draft.mounts.push_back({std::string(item->TextOf("mountPath")), std::move(map),
                            std::string(item->TextOf("subPath"))});
  }
}

void AddEnvironmentMaps(const YamlNode& container, Draft& draft) {
  const YamlNode* sources = container.Find("envFrom");
  if (sources == nullptr) return;
  for (const YamlNode* item : sources->items) {
    const YamlNode* map = item->Find("configMapRef");
    if (map == nullptr || draft.environment_maps.size() >= kMaxMounts) continue;
    draft.environment_maps.emplace_back(map->TextOf("name"));
  }
}

void AppendText(const YamlNode& node, size_t depth, std::string& out) {
  constexpr size_t kMaxDepth = 20;
  constexpr size_t kMaxText = 10'000;
  if (depth > kMaxDepth || out.size() > kMaxText) return;
  out += node.text;
  out += '\n';
  for (const YamlNode::Entry& entry : node.entries) {
    AppendText(*entry.key, depth + 1, out);
    AppendText(*entry.value, depth + 1, out);
  }
  for (const YamlNode* item : node.items) AppendText(*item, depth + 1, out);
}

// What all containers of one object have in common.
struct PodOwner {
  std::string name;  // "Deployment ml/vllm"
  std::string graph;
  std::string network_namespace;
  std::string maker;
  std::string kind;
  std::string plain_name;
  uint32_t replicas = 1;
};

// The kind of the object whose controller has made this one; empty: somebody has written it.
std::string MakerOf(const YamlNode* metadata) {
  const YamlNode* makers = metadata == nullptr ? nullptr : metadata->Find("ownerReferences");
  return makers == nullptr || makers->items.empty()
             ? std::string()
             : std::string(makers->items.front()->TextOf("kind"));
}

// Two texts that differ say that pods may well be on different nodes.
std::string NodesOf(const YamlNode* pod) {
  std::string nodes;
  if (pod == nullptr) return nodes;
  for (const std::string_view key : {"nodeSelector", "affinity", "nodeName"}) {
    if (const YamlNode* choice = pod->Find(key)) AppendText(*choice, 0, nodes);
  }
  return nodes;
}

void CollectPod(const YamlNode& pod, const YamlNode* labels, const PodOwner& owner,
                Collection& out) {
  for (const YamlNode* container : pod.Find("containers")->items) {
    if (!container->map()) continue;
    Draft draft;
    Program& program = draft.program;
    program.name = fmt::format("{}, container {}", owner.name, container->TextOf("name"));
    program.graph = owner.graph;
    program.network_namespace = owner.network_namespace;
    program.replicas = owner.replicas;
    program.labels = TextMap(labels);
    program.place = container->place();
    program.per_node = owner.kind == "DaemonSet";
    draft.maker = owner.maker;
    draft.owner_kind = owner.kind;
    draft.owner_name = owner.plain_name;
    AddPodSettings(&pod, *container, draft);
    out.Add(DraftsOf(PartsOf(*container), draft));
  }
}

// Pods stand at any depth: a template of a template in a CronJob, two in a LeaderWorkerSet.
void CollectPods(const YamlNode& node, const YamlNode* metadata, const PodOwner& owner,
                 Collection& out) {
  const YamlNode* containers = node.Find("containers");
  if (containers != nullptr && containers->sequence()) {
    CollectPod(node, metadata == nullptr ? nullptr : metadata->Find("labels"), owner, out);
    return;
  }
  for (const YamlNode::Entry& entry : node.entries) {
    if (entry.value->map()) CollectPods(*entry.value, node.Find("metadata"), owner, out);
  }
}

void CollectNamedService(const YamlNode& object, Collection& out) {
  const YamlNode* spec = object.Find("spec");
  NamedService service;
  service.place = object.place();
  if (const YamlNode* metadata = object.Find("metadata")) {
    service.name = metadata->TextOf("name");
    service.network_namespace = metadata->TextOf("namespace");
    service.place = metadata->place();
  }
  if (spec != nullptr) {
    service.headless = spec->TextOf("clusterIP") == "None";
    service.selector = TextMap(spec->Find("selector"));
  }
  out.services.push_back(std::move(service));
}

void NoteKind(const YamlNode& object, Collection& out) {
  constexpr size_t kMaxKinds = 10'000;
  const YamlNode* metadata = object.Find("metadata");
  if (metadata == nullptr || out.kinds.size() >= kMaxKinds) return;
  out.kinds.emplace(object.TextOf("kind"), metadata->TextOf("namespace"));
}

// HorizontalPodAutoscaler, and KEDA's ScaledObject.
void CollectAutoscaler(const YamlNode& object, Collection& out) {
  constexpr size_t kMaxAutoscalers = 10'000;
  const YamlNode* spec = object.Find("spec");
  const YamlNode* target = spec == nullptr ? nullptr : spec->Find("scaleTargetRef");
  if (target == nullptr || out.autoscalers.size() >= kMaxAutoscalers) return;
  const bool keda = object.TextOf("kind") == "ScaledObject";
  Autoscaler scaler;
  scaler.kind = target->TextOf("kind").empty() ? "Deployment" : target->TextOf("kind");
  scaler.name = target->TextOf("name");
  if (const YamlNode* metadata = object.Find("metadata")) {
    scaler.network_namespace = metadata->TextOf("namespace");
  }
  scaler.least = NumberIn<uint32_t>(spec->Find(keda ? "minReplicaCount" : "minReplicas"), 1);
  scaler.most = NumberIn<uint32_t>(spec->Find(keda ? "maxReplicaCount" : "maxReplicas"),
                                   keda ? 100 : scaler.least);
  out.autoscalers.push_back(std::move(scaler));
}

void CollectWorkload(const YamlNode& object, const std::string& graph, Collection& out) {
  const YamlNode* spec = object.Find("spec");
  if (spec == nullptr) return;
  PodOwner owner;
  owner.name = fmt::format("{} {}", object.TextOf("kind"), QualifiedName(object));
  owner.graph = graph;
  owner.replicas = NumberIn<uint32_t>(spec->Find("replicas"), 1);
  const YamlNode* metadata = object.Find("metadata");
  owner.kind = object.TextOf("kind");
  if (metadata != nullptr) {
    owner.network_namespace = metadata->TextOf("namespace");
    owner.plain_name = metadata->TextOf("name");
  }
  owner.maker = MakerOf(metadata);
  // What a pod has made, as the leaders of a LeaderWorkerSet do, is there because of that.
  if (owner.replicas == 0 || owner.maker == "Pod") return;
  CollectPods(*spec, metadata, owner, out);
}

}  // namespace

bool IsKubernetesObject(const YamlNode& document) {
  return !document.TextOf("kind").empty() && !document.TextOf("apiVersion").empty();
}

std::string QualifiedName(const YamlNode& object) {
  const YamlNode* metadata = object.Find("metadata");
  if (metadata == nullptr) return {};
  const std::string_view name = metadata->TextOf("name");
  const std::string_view space = metadata->TextOf("namespace");
  return space.empty() ? std::string(name) : fmt::format("{}/{}", space, name);
}

ContainerParts PartsOf(const YamlNode& container) {
  ContainerParts parts;
  parts.home = &container;
  parts.image = container.TextOf("image");
  parts.command = container.Find("command");
  parts.arguments = container.Find("args");
  parts.environments = {container.Find("env")};
  return parts;
}

void AddPodSettings(const YamlNode* pod, const YamlNode& container, Draft& draft) {
  draft.program.nodes = NodesOf(pod);
  draft.program.host_network = pod != nullptr && pod->TextOf("hostNetwork") == "true";
  AddContainerPorts(container, draft.program);
  AddMounts(pod, container, draft);
  AddEnvironmentMaps(container, draft);
}

void CollectKubernetes(const YamlNode& object, const std::string& graph, Collection& out) {
  const std::string_view kind = object.TextOf("kind");
  NoteKind(object, out);
  if (const YamlNode* items = object.Find("items"); items != nullptr && items->sequence()) {
    for (const YamlNode* item : items->items) {
      if (item->Find("items") == nullptr) CollectKubernetes(*item, graph, out);
    }
  } else if (kind == "DynamoGraphDeployment") {
    CollectDynamoGraph(object, out);
  } else if (kind == "Service") {
    CollectNamedService(object, out);
  } else if (kind == "HorizontalPodAutoscaler" || kind == "ScaledObject") {
    CollectAutoscaler(object, out);
  } else if (kind == "ConfigMap") {
    const YamlNode* metadata = object.Find("metadata");
    if (metadata == nullptr) return;
    out.config_maps.push_back({std::string(metadata->TextOf("name")),
                               std::string(metadata->TextOf("namespace")), object.Find("data")});
  } else {
    CollectWorkload(object, graph, out);
  }
}

}  // namespace fathom
