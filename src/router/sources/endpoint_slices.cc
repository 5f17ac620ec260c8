#include "router/sources/endpoint_slices.h"

#include <fmt/format.h>

#include <optional>

#include "base/text.h"
#include "io/net/address.h"
#include "router/sources/kube_json.h"

namespace fathom {
namespace {

struct SlicePort {
  uint16_t number = 0;
  bool tls = false;
};

bool IsTcp(const Json& port) {
  const std::string_view protocol = KubeText(port, {"protocol"});
  return protocol.empty() || protocol == "TCP";
}

bool SaysHttps(std::string_view protocol) {
  return protocol == "https" || protocol == "HTTPS" || protocol == "kubernetes.io/https";
}

// A port without a number stands for every number, which a name cannot choose from.
std::optional<SlicePort> PortOf(const Json& slice, std::string_view wanted) {
  const auto number = ParseDecimal(wanted);
  for (const Json& port : KubeArray(slice, {"ports"})) {
    if (!IsTcp(port)) continue;
    const bool tls = SaysHttps(KubeText(port, {"appProtocol"}));
    const auto own = KubePort(port.Find("port"));
    if (number && (!own || *own == *number)) return SlicePort{static_cast<uint16_t>(*number), tls};
    if (!number && own && KubeText(port, {"name"}) == wanted) return SlicePort{*own, tls};
  }
  return std::nullopt;
}

std::string NamesOfPorts(const Json& slice) {
  constexpr size_t kShown = 8;
  std::string names;
  size_t shown = 0;
  for (const Json& port : KubeArray(slice, {"ports"})) {
    if (++shown > kShown) break;
    const auto number = KubePort(port.Find("port"));
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ",
                         KubeText(port, {"name"}).substr(0, 63), number ? *number : 0);
  }
  return names.empty() ? "none" : names;
}

bool Condition(const Json& endpoint, std::string_view name, bool absent) {
  const Json* const found = KubeAt(endpoint, {"conditions", name});
  const bool* const value = found == nullptr ? nullptr : found->boolean();
  return value == nullptr ? absent : *value;
}

SourceSays StateOfEndpoint(const Json& endpoint) {
  if (Condition(endpoint, "terminating", false)) return SourceSays::kDrain;
  return Condition(endpoint, "ready", true) ? SourceSays::kServe : SourceSays::kUnready;
}

}  // namespace

SliceLook ReadEndpointSlice(const Json& slice, std::string_view wanted) {
  SliceLook look;
  const Json::Array& endpoints = KubeArray(slice, {"endpoints"});
  if (endpoints.empty()) return look;
  const std::string_view type = KubeText(slice, {"addressType"});
  if (type != "IPv4" && type != "IPv6") {
    look.problem = fmt::format("an EndpointSlice has addresses of type {}, which are not used",
                               type.empty() ? "unknown" : type.substr(0, 40));
    return look;
  }
  const auto port = PortOf(slice, wanted);
  if (!port) {
    look.problem = fmt::format("an EndpointSlice has no TCP port '{}'; its ports are {}", wanted,
                               NamesOfPorts(slice));
    return look;
  }
  for (const Json& endpoint : endpoints) {
    // Kubernetes promises that all addresses of an endpoint are the same one.
    const Json::Array& addresses = KubeArray(endpoint, {"addresses"});
    const std::string* const text = addresses.empty() ? nullptr : addresses.front().string();
    const auto address = text == nullptr ? std::nullopt : Address::Numeric(*text, port->number);
    if (!address) {
      look.problem = "an EndpointSlice has an endpoint without an IP address";
      continue;
    }
    KubeSighting seen{.host = SplitHostPort(address->ToString())->first,
                      .port = port->number,
                      .tls = port->tls,
                      .says = StateOfEndpoint(endpoint),
                      .pod = {},
                      .uid = {}};
    if (KubeText(endpoint, {"targetRef", "kind"}) == "Pod") {
      seen.pod = KubeText(endpoint, {"targetRef", "name"}).substr(0, 253);
      seen.uid = KubeText(endpoint, {"targetRef", "uid"}).substr(0, 128);
    }
    look.seen.push_back(std::move(seen));
  }
  return look;
}

}  // namespace fathom
