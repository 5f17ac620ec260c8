// What does a compose file deploy?
#pragma once

#include <string>

#include "diagnose/manifest/collection.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {

bool IsComposeFile(const YamlNode& document);
void CollectCompose(const YamlNode& document, const std::string& graph, Collection& out);

}  // namespace fathom
