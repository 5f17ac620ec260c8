// Which tokens does the prompt of a request have?
//
// Ids, where the request brings them: in `prompt`, and in chats where the imitated engine has a
// member for them (SGLang `input_ids`, TensorRT-LLM `prompt_token_ids`; vLLM passes over both). The
// messages have to be there all the same, and are not looked at. Anything else is tokenized.
//
// Errors  kCaller, one line for the client.
#pragma once

#include <vector>

#include "base/result.h"
#include "lab/mock/completion_request.h"
#include "lab/mock/kv_event.h"
#include "lab/mock/mock_options.h"

namespace fathom {

// In which form a prompt comes.
enum class PromptForm : uint8_t { kIds, kText, kChat };

PromptForm FormOf(const CompletionRequest& request, bool chat, MockedEngine engine);

// One prompt of a chat; of `prompt` one per text or list of ids.
Result<std::vector<std::vector<TokenId>>> PromptsOf(const CompletionRequest& request, bool chat,
                                                    const MockOptions& options);

}  // namespace fathom
