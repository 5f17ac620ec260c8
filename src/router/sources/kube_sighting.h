// What does one object of Kubernetes say of one endpoint?
#pragma once

#include <cstdint>
#include <string>

#include "router/fleet/worker_origin.h"

namespace fathom {

struct KubeSighting {
  std::string host;  // an IP address, in its normalized spelling
  uint16_t port = 0;
  bool tls = false;  // appProtocol says https
  SourceSays says = SourceSays::kServe;
  std::string pod;  // its name in the namespace; empty: not a pod, or not said
  std::string uid;  // of the pod; empty: not said

  bool v6() const { return host.contains(':'); }

  // What is one endpoint, in however many objects and address families it stands.
  std::string Key() const {
    const std::string number = std::to_string(port);
    if (!uid.empty()) return "uid/" + uid + "/" + number;
    if (!pod.empty()) return "pod/" + pod + "/" + number;
    return "at/" + host + "/" + number;
  }

  friend bool operator==(const KubeSighting&, const KubeSighting&) = default;
};

}  // namespace fathom
