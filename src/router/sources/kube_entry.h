// What is claimed of an endpoint of Kubernetes?
//
// What the operator wrote for the whole source counts first, then what the endpoint's pod says of
// itself. https is spoken where the port's appProtocol says so, or where the entry has a ca_file.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "router/sources/event_template.h"
#include "router/sources/kube_sighting.h"
#include "router/sources/muster.h"
#include "router/sources/pod_facts.h"

namespace fathom {

class KubeEntry {
 public:
  // `host_name` is what certificates of these workers are issued for; empty: their addresses.
  // Refuses what could not be applied to any of them.
  static Result<KubeEntry> Make(const WorkerRequest& entry, std::string host_name,
                                const Directory& directory);

  std::string UrlOf(const KubeSighting& seen) const;
  // `facts` may be null.
  Claim For(const KubeSighting& seen, const PodFacts* facts) const;

  const std::string& source() const { return entry_.url; }

 private:
  bool tls(const KubeSighting& seen) const { return seen.tls || !entry_.ca_file.empty(); }

  WorkerRequest entry_;
  std::string host_name_;
  std::optional<EventTemplate> events_;
  std::optional<EventTemplate> replay_;
};

}  // namespace fathom
