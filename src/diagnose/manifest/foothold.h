// Where in a YAML text can something be added?
#pragma once

#include <string_view>

#include "diagnose/manifest/program.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {

// At the end of that list, map or command line; `form` is what a block has, flow items are found
// out. kNone where lines cannot be put in.
Foothold FootholdIn(const YamlNode& node, Foothold::Form form);

// In that map, for a key that it does not have.
Foothold FootholdForMissing(const YamlNode& map, std::string_view key, Foothold::Form form);

}  // namespace fathom
