// How does a pod fare, by what the Kubernetes API says of it?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/json.h"

namespace fathom {

struct KubeContainer {
  std::string name;
  std::string image;     // as asked for
  std::string image_id;  // as it runs
  uint64_t restarts = 0;
  bool ready = false;
  std::string waiting;     // "CrashLoopBackOff"; empty: it does not wait
  std::string last_ended;  // why it ended last: "OOMKilled", "Error"; empty: it never did
  int64_t last_exit = 0;   // its exit status then
  bool serves = false;     // it is an engine, a router or a frontend, by its command and image
};

struct KubePod {
  std::string name;
  std::string owner;  // "ReplicaSet vllm-7c9f"; empty: it stands alone
  std::string node;
  std::string phase;   // "Running"
  std::string reason;  // "Evicted"; mostly empty
  bool ready = false;
  std::vector<KubeContainer> containers;

  uint64_t Restarts() const;
  bool OutOfMemory() const;  // a container was killed for it, now or the last time
};

// An object of the list of pods. Members that are missing or of another type are left as they are.
KubePod ReadPod(const Json& pod);

}  // namespace fathom
