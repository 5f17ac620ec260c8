// The members of a request that reach a chat template.
#pragma once

#include "gateway/request_fields.h"
#include "model/chat_request.h"

namespace fathom {

ChatFields ChatOf(const PromptFields& fields);

}  // namespace fathom
