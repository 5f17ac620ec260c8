#include "io/kube/kube_trouble.h"

#include <fmt/format.h>

namespace fathom {

std::string RefusalWords(int status, std::string_view verb, std::string_view what,
                         std::string_view network_namespace, std::string_view group) {
  if (status == 401) {
    return "401 unauthorized: the API server rejects these credentials; log in again, and try "
           "kubectl get pods";
  }
  if (status == 403) {
    return fmt::format(
        "403 forbidden: cannot {0} {1} in namespace {2}; ask for a Role with verb {0} on {1} of "
        "API group \"{3}\" (check with kubectl auth can-i {0} {1} -n {2})",
        verb, what, network_namespace, group);
  }
  return fmt::format("the API server answered {}", status);
}

}  // namespace fathom
