// One small HTTP call and its whole answer: for health checks, capability questions and tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/client_connection.h"

namespace fathom {

struct FetchRequest {
  std::string_view method = "GET";
  std::string path;  // appended to the endpoint's own
  std::vector<std::pair<std::string, std::string>> headers;
  std::string_view body;
  size_t max_answer = 4 << 20;
};

struct FetchAnswer {
  int status = 0;
  std::string body;
};

// On a connection of its own, closed afterwards. Errors are the peer's: refused, timed out, broken
// off, too long, not HTTP.
Task<Result<FetchAnswer>> Fetch(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                const FetchRequest& request, TimePoint deadline);

// The whole answer to a request that has been sent on the connection after BeginAnswer(). Errors
// are the peer's.
Task<Result<FetchAnswer>> ReceiveAnswer(ClientConnection& connection, bool to_head_request,
                                        size_t max_answer, TimePoint deadline);

// Request line and the headers every request needs, up to but without the blank line.
void AppendRequestHead(std::string& out, std::string_view method, const Url& url,
                       std::string_view path);

}  // namespace fathom
