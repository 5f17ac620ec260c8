// What does an engine's own file say?
//
// TensorRT-LLM's options, the --config files of vLLM and SGLang, and Fathom's own: a map of
// settings, some of them maps again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/manifest/identity.h"
#include "diagnose/manifest/program.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {

struct EngineFile {
  static constexpr size_t kMaxKeys = 500;  // what is behind them is left out

  std::vector<Written> keys;
  Foothold foothold;
};

EngineFile ReadEngineFile(const YamlNode& map);

// Whose file it is, by a key that one program alone has, or by two that fit; role kOther: nobody's
// that we know.
Identity IdentityOfEngineFile(const YamlNode& map);
Identity IdentityOfKeys(const std::vector<std::string_view>& top_level);

// It has a key that we know: too little by itself, enough where a program names the file.
bool MayBeEngineFile(const YamlNode& map);

// "workers" is a sign of Fathom only where it has URLs.
bool IsWorkerKey(std::string_view key);
bool IsWorkerUrl(std::string_view text);

}  // namespace fathom
