// Which pods, and which of their ports, are an InferencePool (inference.networking.k8s.io/v1)?
#pragma once

#include <string>
#include <vector>

#include "codec/json.h"

namespace fathom {

struct PoolLook {
  std::string selector;            // "app=vllm,tier=gpu"; empty: none, and so no pods
  std::vector<std::string> ports;  // each is a worker in each pod

  static PoolLook Of(const Json& pool);

  friend bool operator==(const PoolLook&, const PoolLook&) = default;
};

// A map of labels as a label selector; empty if it has none.
std::string SelectorOf(const Json::Object& labels);

}  // namespace fathom
