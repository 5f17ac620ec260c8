// Of which kind is the prompt of this request? Each kind is a way in which engines may come to
// other tokens than the router.
#pragma once

#include "router/fleet/served_request.h"
#include "router/gateway/request_fields.h"

namespace fathom {

// Of the members that determine the tokens; a prompt that is a list has ids.
PromptKind KindOf(const PromptFields& parts);

}  // namespace fathom
