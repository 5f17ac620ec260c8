// What does a chat become, for an engine that has no model?
//
// A template that is nothing but the messages, each between the special token of its role and the
// end token, and the token of whoever speaks next:
//
//   <|system|>Be brief.<|end|><|user|>Hello<|end|><|assistant|>
//
// So the prompt of a turn, the answer to it and <|end|> are together the beginning of the next
// turn's prompt, token for token, which is what prefix caching lives on. A role that has no special
// token is written the same way. Parts of a message that are not text stand as [type:hash]; tools
// and tool calls stand as the JSON that they came in, tools as a message of their own before all
// others.
//
// Errors  kCaller, one line for the client.
#pragma once

#include <string>

#include "base/result.h"
#include "text/chat/chat_request.h"

namespace fathom {

Result<std::string> RenderToyChat(const ChatFields& chat);

}  // namespace fathom
