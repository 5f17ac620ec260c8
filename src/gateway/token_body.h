// A request with its prompt as token ids, for engines that take them: they need not render and
// tokenize again, and their tokens are the router's.
//
//   completions   "prompt" is replaced; every engine takes ids there
//   chats         "input_ids" (SGLang) or "prompt_token_ids" (TensorRT-LLM) is added; the messages
//                 stay, because the engines want to see them. vLLM has no such member
//
// The rest of the body stays as it is, byte for byte.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fleet/engine_report.h"
#include "gateway/gateway_metrics.h"
#include "gateway/request_fields.h"
#include "tokens/token.h"

namespace fathom {

// Whether that would say the same to the engine as the body does.
bool TakesTokenIds(EngineKind engine, Route route, const RequestFields& fields);

// The fields point into the body.
std::string WithTokenIds(std::string_view body, const RequestFields& fields, Route route,
                         EngineKind engine, std::span<const TokenId> tokens);

}  // namespace fathom
