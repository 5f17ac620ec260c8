// Why does the API server not give us what we ask for, and what should the operator do?
#pragma once

#include <string>
#include <string_view>

#include "io/kube/kube_resource.h"

namespace fathom {

struct KubeTrouble {
  int status = 0;    // of HTTP, or of the Status that stands for one in a stream; 0: no answer
  std::string what;  // for operators; names verb, resource, namespace, and for 401 and 403 the fix
};

// An answer that is not 200, in words that say what to do. `verb` as RBAC has it: list, watch, get.
std::string RefusalWords(int status, std::string_view verb, std::string_view what,
                         std::string_view network_namespace, std::string_view group);

}  // namespace fathom
