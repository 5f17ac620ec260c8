// Opens sources of Kubernetes: k8s://, k8s-pods://, k8s-pool://.
//
// One client for all of them, made with the first: without such an entry no kubeconfig is looked
// for. No access at all is an error; a server that does not answer is not.
#pragma once

#include <memory>

#include "base/log.h"
#include "base/result.h"
#include "io/kube/kube_client.h"
#include "io/kube/kubeconfig.h"
#include "router/sources/kube_source.h"
#include "router/sources/muster.h"
#include "router/sources/worker_sources.h"

namespace fathom {

class KubeDoor {
 public:
  KubeDoor(Loop& control, Resolver& resolver, Directory& directory, Muster& muster, Log& log,
           KubeWish wish)
      : loop_(control),
        resolver_(resolver),
        directory_(directory),
        muster_(muster),
        log_(log),
        wish_(std::move(wish)) {}

  // It outlives the sources.
  void Teach(WorkerSources& sources);

 private:
  using Made = Result<std::unique_ptr<WorkerSource>>;

  Made Service(const WorkerRequest& entry);
  Made Pods(const WorkerRequest& entry);
  Made Pool(const WorkerRequest& entry);
  Result<KubeGround> Ground();

  Loop& loop_;
  Resolver& resolver_;
  Directory& directory_;
  Muster& muster_;
  Log& log_;
  const KubeWish wish_;
  std::unique_ptr<KubeClient> client_;
};

}  // namespace fathom
