#include "router/sources/pod_look.h"

#include <algorithm>

#include "base/text.h"
#include "io/net/address.h"
#include "router/sources/kube_json.h"

namespace fathom {
namespace {

constexpr size_t kMaxAddresses = 4;  // Kubernetes gives at most one of each family
constexpr size_t kMaxPorts = 64;

void AddAddress(std::vector<std::string>& addresses, std::string_view text) {
  const auto address = Address::Numeric(text, 1);
  if (!address || addresses.size() >= kMaxAddresses) return;
  std::string host = SplitHostPort(address->ToString())->first;
  if (std::ranges::count(addresses, host) == 0) addresses.push_back(std::move(host));
}

bool IsReady(const Json& pod) {
  for (const Json& condition : KubeArray(pod, {"status", "conditions"})) {
    if (KubeText(condition, {"type"}) == "Ready") return KubeText(condition, {"status"}) == "True";
  }
  return false;
}

void AddPorts(const Json& pod, std::string_view kind, std::map<std::string, uint16_t>& ports) {
  for (const Json& container : KubeArray(pod, {"spec", kind})) {
    for (const Json& port : KubeArray(container, {"ports"})) {
      const std::string_view name = KubeText(port, {"name"});
      const auto number = KubePort(port.Find("containerPort"));
      if (name.empty() || !number || ports.size() >= kMaxPorts) continue;
      ports.try_emplace(std::string(name.substr(0, 63)), *number);
    }
  }
}

}  // namespace

PodLook PodLook::Of(std::string_view name, const Json& pod) {
  PodLook look;
  look.name = name;
  look.uid = KubeText(pod, {"metadata", "uid"}).substr(0, 128);
  AddAddress(look.addresses, KubeText(pod, {"status", "podIP"}));
  for (const Json& ip : KubeArray(pod, {"status", "podIPs"})) {
    AddAddress(look.addresses, KubeText(ip, {"ip"}));
  }
  const std::string_view phase = KubeText(pod, {"status", "phase"});
  look.ended = phase == "Succeeded" || phase == "Failed";
  if (look.ended || !KubeText(pod, {"metadata", "deletionTimestamp"}).empty()) {
    look.says = SourceSays::kDrain;
  } else if (!IsReady(pod)) {
    look.says = SourceSays::kUnready;
  }
  AddPorts(pod, "containers", look.ports);
  AddPorts(pod, "initContainers", look.ports);  // sidecars are among these
  look.facts = std::make_shared<const PodFacts>(PodFacts::Of(pod));
  return look;
}

std::vector<KubeSighting> PodLook::At(std::string_view port) const {
  if (ended) return {};
  auto number = ParseDecimal(port);
  if (!number) {
    const auto known = ports.find(std::string(port));
    if (known == ports.end()) return {};
    number = known->second;
  }
  std::vector<KubeSighting> seen;
  for (const std::string& host : addresses) {
    seen.push_back({.host = host,
                    .port = static_cast<uint16_t>(*number),
                    .says = says,
                    .pod = name,
                    .uid = uid});
  }
  return seen;
}

}  // namespace fathom
