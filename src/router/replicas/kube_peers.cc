#include "router/replicas/kube_peers.h"

#include <utility>

#include "io/net/address.h"

namespace fathom {
namespace {

constexpr KubeResource kPeerSlices = {"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"};

const Json::Array& ArrayIn(const Json& object, std::string_view key) {
  static const Json::Array kNone;
  const Json* const found = object.Find(key);
  const Json::Array* const array = found == nullptr ? nullptr : found->array();
  return array == nullptr ? kNone : *array;
}

std::set<std::string> AddressesIn(const Json& slice, uint16_t port) {
  std::set<std::string> addresses;
  for (const Json& endpoint : ArrayIn(slice, "endpoints")) {
    // All addresses of an endpoint are the same one.
    const Json::Array& own = ArrayIn(endpoint, "addresses");
    const std::string* const text = own.empty() ? nullptr : own.front().string();
    const auto address = text == nullptr ? std::nullopt : Address::Numeric(*text, port);
    if (address) addresses.insert(address->ToString());
  }
  return addresses;
}

}  // namespace

KubePeers::KubePeers(Loop& loop, KubeClient& client, const std::string& network_namespace,
                     const std::string& service, uint16_t port, OnFound on_found,
                     OnFailed on_failed, const KubeFollowerOptions& options)
    : port_(port),
      on_found_(std::move(on_found)),
      on_failed_(std::move(on_failed)),
      follower_(loop, client,
                {.resource = kPeerSlices,
                 .network_namespace = network_namespace,
                 .label_selector = "kubernetes.io/service-name=" + service},
                *this, options) {}

void KubePeers::OnObject(std::string_view name, const Json& slice) {
  slices_.insert_or_assign(std::string(name), AddressesIn(slice, port_));
  Tell();
}

void KubePeers::OnGone(std::string_view name) {
  if (const auto known = slices_.find(name); known != slices_.end()) slices_.erase(known);
  Tell();
}

void KubePeers::OnListed() {
  listed_ = true;
  Tell();
}

// Half a list would look like replicas that are gone.
void KubePeers::Tell() {
  if (!listed_) return;
  std::set<std::string> all;
  for (const auto& [name, addresses] : slices_) {
    for (const std::string& address : addresses) {
      if (all.size() < kMostPeers) all.insert(address);
    }
  }
  on_found_(std::move(all));
}

}  // namespace fathom
