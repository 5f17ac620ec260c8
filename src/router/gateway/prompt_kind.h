// Of which kind is the prompt of this request? Each kind is a way in which engines may come to
// other tokens than the router.
#pragma once

#include <string_view>

#include "router/fleet/served_request.h"
#include "router/gateway/gateway_metrics.h"
#include "router/gateway/request_fields.h"

namespace fathom {

// Of the members that determine the tokens; a prompt that is a list has ids.
PromptKind KindOf(const PromptFields& parts);

// The member that has the prompt of a request that is no chat, in the words of its route; empty if
// there is none.
std::string_view TextOrIds(const RequestFields& fields, Route route);

}  // namespace fathom
