// What does an engine's own file say?
//
// TensorRT-LLM's options, the --config files of vLLM and SGLang, and Fathom's own: a map of
// settings, some of them maps again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/identity.h"
#include "manifest/program.h"
#include "manifest/yaml_tree.h"

namespace fathom {

struct EngineFile {
  static constexpr size_t kMaxKeys = 500;  // what is behind them is left out

  std::vector<Written> keys;
  Foothold foothold;
};

EngineFile ReadEngineFile(const YamlNode& map);

// Whose file it is, by its keys; role kOther: nobody's that we know.
Identity IdentityOfEngineFile(const YamlNode& map);
Identity IdentityOfKeys(const std::vector<std::string_view>& top_level);

}  // namespace fathom
