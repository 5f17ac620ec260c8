#include "router/sources/kube_service_source.h"

#include <fmt/format.h>

#include <utility>

#include "router/sources/endpoint_slices.h"
#include "router/sources/kube_json.h"
#include "router/sources/pool_look.h"

namespace fathom {
namespace {

constexpr KubeResource kSlices = {"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"};
constexpr KubeResource kServices = {"", "v1", "services", "Service"};

}  // namespace

KubeServiceSource::KubeServiceSource(const KubeGround& ground, KubeEntry entry, KubeServiceUrl url,
                                     const KubeFollowerOptions& options)
    : KubeSource(ground, std::move(entry)),
      url_(std::move(url)),
      pods_(ground.loop, ground.client, url_.ns,
            {.pod =
                 [this](PodLook pod) {
                   claims().SetPod(std::move(pod));
                   Changed();
                 },
             .gone = [this](const std::string& name) { claims().RemovePod(name); },
             .listed = [this] { PodsSettled(); },
             .trouble = [this](const KubeTrouble& trouble) { OnPodTrouble(trouble); },
             .recovered = [this] { CannotSee("pods", ""); }},
            options),
      slices_(ground.loop, ground.client,
              {.resource = kSlices,
               .network_namespace = url_.ns,
               .label_selector = fmt::format("kubernetes.io/service-name={}", url_.service)},
              {.object = [this](std::string_view name, const Json& slice) { OnSlice(name, slice); },
               .gone = [this](std::string_view name) { OnSliceGone(name); },
               .listed =
                   [this] {
                     if (!slices_listed_) slices_listed_ = loop().now();
                     Listed();
                   },
               .trouble = [this](const KubeTrouble& trouble) { Fails("endpointslices", trouble); },
               .recovered = [this] { Works("endpointslices"); }},
              options),
      service_(ground.loop, ground.client,
               {.resource = kServices,
                .network_namespace = url_.ns,
                .field_selector = fmt::format("metadata.name={}", url_.service)},
               {.object = [this](std::string_view, const Json& service) { OnService(service); },
                .gone = [this](std::string_view) { OnNoService(); },
                .listed =
                    [this] {
                      if (!service_seen_) OnNoService();
                    },
                .trouble =
                    [this](const KubeTrouble& trouble) {
                      if (trouble.status == 403 && !pods_.follows()) pods_.Follow("");
                    },
                .recovered = [] {}},
               options) {}

void KubeServiceSource::Follow() {
  slices_.Start();
  service_.Start();
}

void KubeServiceSource::OnSlice(std::string_view name, const Json& slice) {
  SliceLook look = ReadEndpointSlice(slice, url_.port);
  if (look.problem.empty()) {
    if (const auto known = problems_.find(name); known != problems_.end()) problems_.erase(known);
  } else {
    problems_.insert_or_assign(std::string(name), std::move(look.problem));
  }
  CannotSee("slices", problems_.empty() ? "" : problems_.begin()->second);
  claims().Set(std::string(name), std::move(look.seen));
  Changed();
}

void KubeServiceSource::OnSliceGone(std::string_view name) {
  if (const auto known = problems_.find(name); known != problems_.end()) problems_.erase(known);
  CannotSee("slices", problems_.empty() ? "" : problems_.begin()->second);
  claims().Set(std::string(name), {});
  Changed();
}

void KubeServiceSource::OnService(const Json& service) {
  service_seen_ = true;
  CannotSee("service", "");
  pods_.Follow(SelectorOf(KubeMap(service, {"spec", "selector"})));
  Changed();
}

// EndpointSlices can be written without a Service.
void KubeServiceSource::OnNoService() {
  service_seen_ = false;
  CannotSee("service",
            fmt::format("there is no Service {} in namespace {}", url_.service, url_.ns));
  if (!pods_.follows()) pods_.Follow("");
  Changed();
}

// A server that is away, or refuses us altogether, is said by the slices, and what is known of the
// pods stays.
void KubeServiceSource::OnPodTrouble(const KubeTrouble& trouble) {
  if (trouble.status == 403) {
    CannotSee("pods",
              fmt::format("cannot list pods in namespace {}: roles and labels are not known; {}",
                          url_.ns, trouble.what));
  }
  PodsSettled();
}

void KubeServiceSource::PodsSettled() {
  pods_settled_ = true;
  Listed();
}

std::string KubeServiceSource::WhyNone() const {
  if (Lacks("service") || Lacks("slices")) return "";
  return fmt::format(
      "Service {} in namespace {} has no endpoints; start its pods, or correct its selector",
      url_.service, url_.ns);
}

void KubeServiceSource::Look() {
  const bool waits = slices_listed_ && !pods_settled_;
  if (waits && loop().now() - *slices_listed_ > kPodPatience) PodsSettled();
}

}  // namespace fathom
