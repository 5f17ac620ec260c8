// Which chat does an engine make of a request to /v1/messages, the API of Anthropic's clients?
//
// Each engine has its own way: what it puts between the parts of a system prompt, what becomes of
// thoughts, in which order texts and results of tools come. docs/design/0009 has the table.
//
// Errors  kCaller: what the engine refuses, too.
#pragma once

#include "base/result.h"
#include "text/chat/chat_request.h"
#include "text/chat/engine_habits.h"

namespace fathom {

Result<ChatSource> ReadMessages(const ChatFields& request, ChatDialect dialect,
                                const EngineHabits& habits);

}  // namespace fathom
