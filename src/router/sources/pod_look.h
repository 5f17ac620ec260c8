// What is a pod, as a place for engines: where, whether it is ready, what it says of itself?
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "router/sources/kube_sighting.h"
#include "router/sources/pod_facts.h"

namespace fathom {

struct PodLook {
  std::string name;
  std::string uid;
  std::vector<std::string> addresses;     // none: it has not started yet
  SourceSays says = SourceSays::kServe;   // by its own conditions
  bool ended = false;                     // its containers have ended for good
  std::map<std::string, uint16_t> ports;  // of its containers, by name
  std::shared_ptr<const PodFacts> facts;

  static PodLook Of(std::string_view name, const Json& pod);

  // At one port: the name of a container's port, or a number. Nothing if the pod has no such port
  // or no address.
  std::vector<KubeSighting> At(std::string_view port) const;
};

}  // namespace fathom
