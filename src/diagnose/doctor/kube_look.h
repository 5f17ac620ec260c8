// What does a namespace of a Kubernetes cluster run, and what do its pods say?
//
//   const KubeView view = LookAtCluster({.wish = {.network_namespace = "ml"}}, sink);
//
// Reads Deployments, StatefulSets, DaemonSets, LeaderWorkerSets, DynamoGraphDeployments, Services,
// ConfigMaps, Pods, and the ends of the logs of pods that run engines or routers (of all pods,
// where none is recognised). Secrets are never read. One loop on the calling thread.
//
// Memory  The bounds of kube_client.h; logs are not kept.
// Errors  None: what could not be seen says so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "diagnose/doctor/kube_pod.h"
#include "diagnose/findings/report.h"
#include "diagnose/manifest/source_file.h"
#include "io/kube/kubeconfig.h"

namespace fathom {

struct KubeTarget {
  KubeWish wish;
  KubeSurroundings surroundings = KubeSurroundings::OfProcess();
  size_t log_lines = 10'000;                    // of each container; 0: no logs
  Duration patience = std::chrono::seconds(5);  // for one answer
};

struct KubeView {
  bool seen = false;    // anything at all
  std::string problem;  // why nothing was; else empty
  std::string server;
  std::string network_namespace;
  std::vector<LookedAt> looked_at;  // each kind of object, each log
  std::vector<SourceFile> files;    // YAML, one object each: "kube:deployments/vllm"
  std::vector<KubePod> pods;
  std::vector<std::string> lines;    // what is worth saying, one sentence each
  std::vector<std::string> missing;  // what could not be read, and what to ask for
  std::vector<SentRequest> sent;     // GET alone
};

// Where logs go: the container ("kube:pods/vllm-0/engine") and the next bytes of its log. One
// container after the other, never mixed.
using PodLogSink = std::function<void(std::string_view source, std::string_view piece)>;

KubeView LookAtCluster(const KubeTarget& target, const PodLogSink& sink);

}  // namespace fathom
