// What do objects of Kubernetes deploy?
//
// Any object with a pod in it, wherever its kind puts it: Deployment, StatefulSet, DaemonSet, Job,
// LeaderWorkerSet. Lists (kubectl get -o yaml), Services, ConfigMaps and autoscalers. Dynamo's
// graphs are read by dynamo_graph.h.
#pragma once

#include <string>

#include "diagnose/manifest/collection.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {

bool IsKubernetesObject(const YamlNode& document);

// `graph` is what its programs have in common with others: the file.
void CollectKubernetes(const YamlNode& object, const std::string& graph, Collection& out);

// "ml/vllm", "vllm".
std::string QualifiedName(const YamlNode& object);

// What a pod has for its container: ports, mounts, variables of ConfigMaps.
ContainerParts PartsOf(const YamlNode& container);
void AddPodSettings(const YamlNode* pod, const YamlNode& container, Draft& draft);

}  // namespace fathom
