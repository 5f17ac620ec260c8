// Which addresses do the pods of a Service have, for replicas that dial each other?
//
// From its EndpointSlices. Ready or not: a replica that starts is not ready before it has heard the
// others, and one that ends still has requests to tell of.
//
// Threads   The loop's; so are the callbacks.
// Lifetime  The client outlives it, and the loop's turns that follow its destruction.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "io/kube/kube_follower.h"

namespace fathom {

class KubePeers final : private KubeListener {
 public:
  static constexpr size_t kMostPeers = 1024;

  // All of them ("10.0.0.1:7000"), whenever they may have changed.
  using OnFound = std::function<void(std::set<std::string> addresses)>;
  // The API cannot be read, for this reason.
  using OnFailed = std::function<void(const std::string& problem)>;

  KubePeers(Loop& loop, KubeClient& client, const std::string& network_namespace,
            const std::string& service, uint16_t port, OnFound on_found, OnFailed on_failed,
            const KubeFollowerOptions& options = {});

  void Start() { follower_.Start(); }

 private:
  void OnObject(std::string_view name, const Json& slice) override;
  void OnGone(std::string_view name) override;
  void OnListed() override;
  void OnTrouble(const KubeTrouble& trouble) override { on_failed_(trouble.what); }
  void OnRecovered() override { Tell(); }
  void Tell();

  const uint16_t port_;
  const OnFound on_found_;
  const OnFailed on_failed_;
  std::map<std::string, std::set<std::string>, std::less<>> slices_;  // addresses, by name
  bool listed_ = false;
  KubeFollower follower_;
};

}  // namespace fathom
