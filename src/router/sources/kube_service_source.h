// k8s://NAMESPACE/SERVICE:PORT: the endpoints of a Service, from its EndpointSlices.
//
// The slices decide who is a worker. The pods behind them add roles, labels and event ports, and
// say earlier that they end; where they may not be read, the source works without. Which pods:
// those of the Service's selector; where the Service has none or may not be read, those of the
// namespace. After a Service is deleted its pods stay those that it had.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "router/sources/kube_source.h"
#include "router/sources/kube_stream.h"
#include "router/sources/pod_watch.h"
#include "router/sources/source_url.h"

namespace fathom {

class KubeServiceSource final : public KubeSource {
 public:
  KubeServiceSource(const KubeGround& ground, KubeEntry entry, KubeServiceUrl url,
                    const KubeFollowerOptions& options = {});

 private:
  // How long workers may wait for what their pods say.
  static constexpr Duration kPodPatience = std::chrono::seconds(5);

  void Follow() override;
  bool IsWhole() const override { return slices_listed_ && pods_settled_; }
  bool IsBlind() const override { return InTrouble("endpointslices"); }
  std::string WhyNone() const override;
  void Look() override;
  void OnSlice(std::string_view name, const Json& slice);
  void OnSliceGone(std::string_view name);
  void OnService(const Json& service);
  void OnNoService();
  void OnPodTrouble(const KubeTrouble& trouble);
  void PodsSettled();

  const KubeServiceUrl url_;
  PodWatch pods_;
  KubeStream slices_;
  KubeStream service_;
  std::optional<TimePoint> slices_listed_;
  bool service_seen_ = false;
  bool pods_settled_ = false;                                 // known, or they will not be
  std::map<std::string, std::string, std::less<>> problems_;  // by slice
};

}  // namespace fathom
