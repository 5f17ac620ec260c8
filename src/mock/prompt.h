// Which tokens does the prompt of a request have?
//
// A chat becomes text by a template that is nothing but its messages, each between the special
// token of its role and the end token, and the token of whoever speaks next:
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
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mock/completion_request.h"
#include "mock/kv_event.h"

namespace fathom {

// What of a body is rendered; valid JSON values.
struct ChatBody {
  std::string_view messages;
  std::string_view tools;  // empty: none
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the last message stays open
};

Result<std::string> RenderChat(const ChatBody& chat);

// One prompt of a chat; of `prompt` one per text or list of ids.
Result<std::vector<std::vector<TokenId>>> PromptsOf(const CompletionRequest& request, bool chat);

}  // namespace fathom
