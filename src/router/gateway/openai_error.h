// Errors in the format of the OpenAI API.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/renamed.h"
#include "io/http/server_connection.h"

namespace fathom {

// {"error": {"message", "type", "param", "code"}}; the type follows from the status. Clients read
// the message, so it never contains a worker's address.
std::string OpenAiErrorBody(int status, std::string_view code, std::string_view message,
                            std::string_view param = "");

// The complete answer. 429 and 503 have a retry-after header. A code that was renamed in this
// release comes with its former name, x-fathom-former-code.
Answer OpenAiError(int status, std::string_view code, std::string_view message,
                   std::string_view param = "");

std::span<const Renamed> RenamedCodes();

// 405, with the methods that the route has: "GET, POST".
Answer MethodNotAllowed(std::string_view allowed);

}  // namespace fathom
