// Errors of the router in the shape of the API that the client uses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/http/server_connection.h"
#include "router/gateway/early_end.h"

namespace fathom {

// Messages: {"type": "error", "error": {"type", "message"}}; everything else: OpenAI's, with the
// code.
Answer ApiError(AnswerForm form, int status, std::string_view code, std::string_view message,
                std::string_view param = "");

// The event that ends a stream in place of its regular end. `sequence`: its number in a stream of
// responses.
std::string ApiErrorEvent(AnswerForm form, int status, std::string_view code,
                          std::string_view message, uint64_t sequence);

}  // namespace fathom
