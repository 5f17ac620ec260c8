#include "router/sources/kube_pods_source.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace fathom {
namespace {

constexpr KubeResource kPools = {"inference.networking.k8s.io", "v1", "inferencepools",
                                 "InferencePool"};

}  // namespace

KubePodsSource::KubePodsSource(const KubeGround& ground, KubeEntry entry, const KubePodsUrl& url,
                               const KubeFollowerOptions& options)
    : KubePodsSource(ground, std::move(entry), url.ns, options) {
  selector_ = url.selector;
  ports_ = {url.port};
}

KubePodsSource::KubePodsSource(const KubeGround& ground, KubeEntry entry,
                               const std::string& network_namespace,
                               const KubeFollowerOptions& options)
    : KubeSource(ground, std::move(entry)),
      pods_(ground.loop, ground.client, network_namespace,
            {.pod = [this](PodLook pod) { OnPod(std::move(pod)); },
             .gone = [this](const std::string& name) { OnGone(name); },
             .listed =
                 [this] {
                   pods_listed_ = true;
                   Listed();
                 },
             .trouble = [this](const KubeTrouble& trouble) { Fails("pods", trouble); },
             .recovered = [this] { Works("pods"); }},
            options) {}

void KubePodsSource::SetPorts(std::vector<std::string> ports) {
  if (ports == ports_) return;
  ports_ = std::move(ports);
  for (const auto& [_, pod] : looks_) See(pod);
  Changed();
}

void KubePodsSource::OnPod(PodLook pod) {
  if (claims().SetPod(pod)) {
    See(pod);
    looks_.insert_or_assign(pod.name, std::move(pod));
  }
  Changed();
}

void KubePodsSource::OnGone(const std::string& name) {
  looks_.erase(name);
  lacking_.erase(name);
  SayLacking();
  claims().RemovePod(name);
  claims().Set(name, {});
  Changed();
}

void KubePodsSource::See(const PodLook& pod) {
  std::vector<KubeSighting> seen;
  lacking_.erase(pod.name);
  for (const std::string& port : ports_) {
    const auto at = pod.At(port);
    seen.insert(seen.end(), at.begin(), at.end());
    const bool lacks = at.empty() && !pod.addresses.empty() && !pod.ended && !ParseDecimal(port);
    if (lacks) lacking_.insert(pod.name);
  }
  claims().Set(pod.name, std::move(seen));
  SayLacking();
}

void KubePodsSource::SayLacking() {
  CannotSee("port", lacking_.empty() ? std::string()
                                     : fmt::format("pod {} has no container port named '{}'",
                                                   *lacking_.begin(), ports_.front()));
}

std::string KubePodsSource::WhyNone() const {
  if (!pods_.listed() || Lacks("port")) return "";
  if (looks_.empty()) return "no pod matches the selector; correct it, or label the pods";
  return "no pod that matches the selector runs and has an address";
}

KubePoolSource::KubePoolSource(const KubeGround& ground, KubeEntry entry, KubePoolUrl url,
                               const KubeFollowerOptions& options)
    : KubePodsSource(ground, std::move(entry), url.ns, options),
      url_(std::move(url)),
      stream_(ground.loop, ground.client,
              {.resource = kPools,
               .network_namespace = url_.ns,
               .field_selector = fmt::format("metadata.name={}", url_.name)},
              {.object = [this](std::string_view, const Json& pool) { OnPool(pool); },
               .gone = [this](std::string_view) { OnGone(); },
               .listed =
                   [this] {
                     listed_ = true;
                     if (!pool_) OnGone();
                     Listed();
                   },
               .trouble = [this](const KubeTrouble& trouble) { Fails("inferencepools", trouble); },
               .recovered = [this] { Works("inferencepools"); }},
              options) {}

bool KubePoolSource::IsWhole() const {
  if (!listed_) return false;
  return !pool_ || pool_->selector.empty() || KubePodsSource::IsWhole();
}

void KubePoolSource::OnPool(const Json& object) {
  pool_ = PoolLook::Of(object);
  CannotSee("pool", "");
  if (pool_->selector.empty()) {  // it selects nothing, as Kubernetes has it
    pods().Forget();
  } else {
    pods().Follow(pool_->selector);
  }
  SetPorts(pool_->ports);
  Changed();
}

std::string KubePoolSource::WhyNone() const {
  if (!pool_) return "";
  if (pool_->ports.empty()) return "the pool has no target ports; set spec.targetPorts";
  if (pool_->selector.empty()) return "the pool has no selector; set spec.selector.matchLabels";
  return KubePodsSource::WhyNone();
}

void KubePoolSource::OnGone() {
  pool_.reset();
  pods().Forget();
  CannotSee("pool",
            fmt::format("there is no InferencePool {} in namespace {}", url_.name, url_.ns));
  Changed();
}

}  // namespace fathom
