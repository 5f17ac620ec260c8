#include "io/kube/kube_resource.h"

#include <fmt/format.h>

namespace fathom {

std::string KubePath(const KubeResource& resource, std::string_view network_namespace) {
  const std::string root = resource.group.empty()
                               ? fmt::format("/api/{}", resource.version)
                               : fmt::format("/apis/{}/{}", resource.group, resource.version);
  return fmt::format("{}/namespaces/{}/{}", root, network_namespace, resource.plural);
}

}  // namespace fathom
