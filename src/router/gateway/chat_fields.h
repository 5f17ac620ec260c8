// The members of a request that reach a chat template.
#pragma once

#include "router/gateway/request_fields.h"
#include "text/chat/chat_request.h"

namespace fathom {

ChatFields ChatOf(const PromptFields& fields);

// How that engine prepares chats.
ChatDialect DialectOf(EngineKind engine);

}  // namespace fathom
