// Which tools does an engine show to the template, of a request to /v1/messages?
//
// Errors  kCaller: what the engine refuses, too.
#pragma once

#include <optional>

#include "base/result.h"
#include "text/chat/chat_dialect.h"
#include "text/chat/chat_request.h"

namespace fathom {

// Whether blocks in messages of the system add tools, and remove them.
bool ChangesTools(ChatDialect dialect);

// In the form of /v1/chat/completions, after all changes; nothing if the request has none.
Result<std::optional<Json::Array>> ReadMessageTools(const ChatFields& request,
                                                    const Json::Array& messages,
                                                    ChatDialect dialect);

}  // namespace fathom
