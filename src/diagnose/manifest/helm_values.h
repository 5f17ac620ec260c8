// What would the values of a Helm chart deploy?
//
// Charts differ; what looks like a container (an image with arguments, a command or variables) is
// taken for one. Of the vLLM production stack the models with their vllmConfig are known.
#pragma once

#include <string>

#include "diagnose/manifest/collection.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {

void CollectHelmValues(const YamlNode& document, const std::string& graph, Collection& out);

}  // namespace fathom
