#include "router/sources/pool_look.h"

#include <algorithm>

#include "router/sources/kube_json.h"

namespace fathom {

std::string SelectorOf(const Json::Object& labels) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : labels) {
    const std::string* const text = value.string();
    if (text != nullptr) parts.push_back(name + "=" + *text);
  }
  std::ranges::sort(parts);  // the same labels are the same selector
  std::string selector;
  for (const std::string& part : parts) selector += (selector.empty() ? "" : ",") + part;
  return selector;
}

PoolLook PoolLook::Of(const Json& pool) {
  constexpr size_t kMost = 64;  // the API allows 8
  PoolLook look;
  look.selector = SelectorOf(KubeMap(pool, {"spec", "selector", "matchLabels"}));
  for (const Json& port : KubeArray(pool, {"spec", "targetPorts"})) {
    const auto number = KubePort(port.Find("number"));
    if (number && look.ports.size() < kMost) look.ports.push_back(std::to_string(*number));
  }
  return look;
}

}  // namespace fathom
