// k8s-pods://NAMESPACE/SELECTOR:PORT: the pods that a label selector finds, at one of their ports.
// k8s-pool://NAMESPACE/NAME: the pods of an InferencePool, at each of its target ports.
//
// A pool whose selector or ports change is followed: pods and ports that are in both stay as they
// are. The workers of a pool that is deleted leave. Where the cluster has no InferencePools at all
// the source is stale and its workers stay: a definition that is deleted and made again is an
// upgrade.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "router/sources/kube_source.h"
#include "router/sources/kube_stream.h"
#include "router/sources/pod_watch.h"
#include "router/sources/pool_look.h"
#include "router/sources/source_url.h"

namespace fathom {

class KubePodsSource : public KubeSource {
 public:
  KubePodsSource(const KubeGround& ground, KubeEntry entry, const KubePodsUrl& url,
                 const KubeFollowerOptions& options = {});

 protected:
  KubePodsSource(const KubeGround& ground, KubeEntry entry, const std::string& network_namespace,
                 const KubeFollowerOptions& options);

  void Follow() override { pods_.Follow(selector_); }
  bool IsWhole() const override { return pods_listed_; }
  // A pool that cannot be read is taken to be as it was.
  bool IsBlind() const override { return InTrouble("pods"); }
  std::string WhyNone() const override;
  void SetPorts(std::vector<std::string> ports);
  PodWatch& pods() { return pods_; }

 private:
  void OnPod(PodLook pod);
  void OnGone(const std::string& name);
  void See(const PodLook& pod);
  void SayLacking();

  std::string selector_;
  std::vector<std::string> ports_;
  PodWatch pods_;
  std::map<std::string, PodLook> looks_;
  std::set<std::string> lacking_;  // pods without a port of that name
  bool pods_listed_ = false;
};

class KubePoolSource final : public KubePodsSource {
 public:
  KubePoolSource(const KubeGround& ground, KubeEntry entry, KubePoolUrl url,
                 const KubeFollowerOptions& options = {});

 private:
  void Follow() override { stream_.Start(); }
  bool IsWhole() const override;
  std::string WhyNone() const override;
  void OnPool(const Json& object);
  void OnGone();

  const KubePoolUrl url_;
  KubeStream stream_;
  std::optional<PoolLook> pool_;
  bool listed_ = false;
};

}  // namespace fathom
