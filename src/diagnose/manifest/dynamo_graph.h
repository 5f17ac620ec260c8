// What does a graph of Dynamo deploy?
//
// DynamoGraphDeployment with its services as a map (v1alpha1) or its components as a list
// (v1beta1), and the fragments of it that stand in documentation: services without a kind, a
// service alone.
#pragma once

#include <string>

#include "diagnose/manifest/collection.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {

void CollectDynamoGraph(const YamlNode& object, Collection& out);

// Whether a map without a kind is a fragment of a graph.
bool IsDynamoFragment(const YamlNode& document);
void CollectDynamoFragment(const YamlNode& document, const std::string& graph, Collection& out);

}  // namespace fathom
