// A request with its prompt as token ids, for engines that take them: they need not render and
// tokenize again, and use the same tokens as the router.
//
//   completions   "prompt" is replaced; every engine takes ids there
//   chats         "input_ids" (SGLang) or "prompt_token_ids" (TensorRT-LLM) is added; the messages
//                 stay, because the engines require them. vLLM has no such member
//
// The rest of the body is unchanged, byte for byte.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/engine_kind.h"
#include "router/gateway/gateway_metrics.h"
#include "router/gateway/request_fields.h"
#include "text/tokens/token.h"

namespace fathom {

// Whether the engine would answer the request with token ids as it answers the body.
bool TakesTokenIds(EngineKind engine, Route route, const RequestFields& fields);

// The fields must point into the body.
std::string WithTokenIds(std::string_view body, const RequestFields& fields, Route route,
                         EngineKind engine, std::span<const TokenId> tokens);

}  // namespace fathom
