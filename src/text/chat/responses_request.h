// Which chat does an engine make of a request to /v1/responses, the API of OpenAI's agents?
//
// A turn of the assistant comes as several items (thoughts, text, calls of tools): each engine puts
// them together in its own way. docs/design/0009 has the table.
//
// Errors  kCaller: what the engine refuses, too, and what continues a response that only an engine
//         has.
#pragma once

#include "base/result.h"
#include "text/chat/chat_request.h"
#include "text/chat/engine_habits.h"

namespace fathom {

Result<ChatSource> ReadResponses(const ChatFields& request, ChatDialect dialect,
                                 const EngineHabits& habits);

}  // namespace fathom
