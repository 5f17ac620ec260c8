// Errors as clients of the OpenAI API expect them.
#pragma once

#include <string>
#include <string_view>

#include "http/server_connection.h"

namespace fathom {

// {"error": {"message", "type", "param", "code"}}; the type follows from the status. Messages are
// read by clients: they never name a worker's address.
std::string OpenAiErrorBody(int status, std::string_view code, std::string_view message,
                            std::string_view param = "");

// The whole answer. 429 and 503 say when to come back.
Answer OpenAiError(int status, std::string_view code, std::string_view message,
                   std::string_view param = "");

}  // namespace fathom
