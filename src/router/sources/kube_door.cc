#include "router/sources/kube_door.h"

#include <fmt/format.h>

#include "router/sources/kube_pods_source.h"
#include "router/sources/kube_service_source.h"
#include "router/sources/source_url.h"

namespace fathom {

void KubeDoor::Teach(WorkerSources& sources) {
  sources.Teach("k8s", [this](const WorkerRequest& entry) { return Service(entry); });
  sources.Teach("k8s-pods", [this](const WorkerRequest& entry) { return Pods(entry); });
  sources.Teach("k8s-pool", [this](const WorkerRequest& entry) { return Pool(entry); });
}

KubeDoor::Made KubeDoor::Service(const WorkerRequest& entry) {
  TRY(KubeServiceUrl url, KubeServiceUrl::Parse(entry.url));
  const std::string name = fmt::format("{}.{}.svc", url.service, url.ns);
  TRY(KubeEntry made, KubeEntry::Make(entry, name, directory_));
  TRY(const KubeGround ground, Ground());
  return std::make_unique<KubeServiceSource>(ground, std::move(made), std::move(url));
}

KubeDoor::Made KubeDoor::Pods(const WorkerRequest& entry) {
  TRY(const KubePodsUrl url, KubePodsUrl::Parse(entry.url));
  TRY(KubeEntry made, KubeEntry::Make(entry, "", directory_));
  TRY(const KubeGround ground, Ground());
  return std::make_unique<KubePodsSource>(ground, std::move(made), url);
}

KubeDoor::Made KubeDoor::Pool(const WorkerRequest& entry) {
  TRY(KubePoolUrl url, KubePoolUrl::Parse(entry.url));
  TRY(KubeEntry made, KubeEntry::Make(entry, "", directory_));
  TRY(const KubeGround ground, Ground());
  return std::make_unique<KubePoolSource>(ground, std::move(made), std::move(url));
}

Result<KubeGround> KubeDoor::Ground() {
  if (client_ == nullptr) {
    TRY(const KubeAccess access, FindKubeAccess(wish_, KubeSurroundings::OfProcess()));
    TRY(client_, KubeClient::Create(loop_, resolver_, access));
    log_.Info("Kubernetes API", {{"server", client_->url()}, {"access", access.origin}});
  }
  return KubeGround{loop_, *client_, muster_, log_};
}

}  // namespace fathom
