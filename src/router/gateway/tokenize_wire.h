// What is POST /tokenize of vLLM and SGLang asked, and what does its answer say?
//
// A request to /v1/messages or /v1/responses is asked for as the chat that the engine makes of it:
// no engine tokenizes it in its own form.
#pragma once

#include <optional>
#include <string>

#include "io/http/fetch.h"
#include "router/gateway/token_source.h"

namespace fathom {

// The body. nullopt: the question is not such a request.
std::optional<std::string> WriteTokenizeBody(const TokenQuestion& question);

// kUnsupported: the engine has no such endpoint.
TokenAnswer ReadTokenizeAnswer(const FetchAnswer& answer);

}  // namespace fathom
