// What is an object of the Kubernetes API called, and where is it?
#pragma once

#include <string>
#include <string_view>

namespace fathom {

// Objects of one kind, as the API names them.
struct KubeResource {
  std::string_view group;  // empty: the core
  std::string_view version;
  std::string_view plural;  // "deployments"
  std::string_view kind;    // "Deployment"
};

// "/apis/apps/v1/namespaces/ml/deployments"
std::string KubePath(const KubeResource& resource, std::string_view network_namespace);

}  // namespace fathom
