// Which endpoints does an EndpointSlice of a Service have, and may requests go to them?
//
// ready      absent means true.
// terminating  drains, whether it still serves or not: it must get nothing new.
// neither    is not ready: the worker is kept, so that its index is not lost.
//
// Hostile input: a slice may have anything; what is no endpoint is passed over, and said.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "router/sources/kube_sighting.h"

namespace fathom {

struct SliceLook {
  std::vector<KubeSighting> seen;
  std::string problem;  // what was passed over, for operators; empty: nothing
};

// `port` is the name of a port of the slice, or a number.
SliceLook ReadEndpointSlice(const Json& slice, std::string_view port);

}  // namespace fathom
