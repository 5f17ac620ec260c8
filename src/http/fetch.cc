#include "http/fetch.h"

#include <fmt/format.h>

namespace fathom {

void AppendRequestHead(std::string& out, std::string_view method, const Url& url,
                       std::string_view path) {
  out.append(method).append(" ").append(url.path).append(path).append(" HTTP/1.1\r\nhost: ");
  out.append(url.HostHeader()).append("\r\n");
}

Task<Result<FetchAnswer>> Fetch(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                const FetchRequest& request, TimePoint deadline) {
  ClientConnection connection(loop);
  auto opening = connection.Open(endpoint, resolver, deadline);
  auto opened = co_await opening;
  if (!opened) co_return std::unexpected(std::move(opened).error());

  std::string out;
  AppendRequestHead(out, request.method, endpoint.Called(), request.path);
  out += "connection: close\r\n";
  for (const auto& [name, value] : request.headers) {
    out.append(name).append(": ").append(value).append("\r\n");
  }
  if (!request.body.empty()) {
    fmt::format_to(std::back_inserter(out),
                   "content-type: application/json\r\ncontent-length: {}\r\n", request.body.size());
  }
  out.append("\r\n").append(request.body);
  const IoResult sent = co_await connection.socket().Write(out, deadline);
  if (!sent.ok()) co_return Fail(Blame::kPeer, "send: {}", Describe(sent.status));

  auto receiving =
      ReceiveAnswer(connection, request.method == "HEAD", request.max_answer, deadline);
  auto answer = co_await receiving;
  co_return answer;
}

Task<Result<FetchAnswer>> ReceiveAnswer(ClientConnection& connection, bool to_head_request,
                                        size_t max_answer, TimePoint deadline) {
  FetchAnswer answer;
  bool have_head = false;
  for (;;) {
    if (!have_head) {
      TRY_CO(have_head, connection.ParseHead(to_head_request));
      if (have_head) {
        answer.status = connection.head().status;
        connection.in().Consume(connection.head_size());
      }
    }
    while (have_head && !connection.body().done() && !connection.in().empty()) {
      TRY_CO(const auto step, connection.body().Feed(connection.in().view()));
      answer.body += step.payload;
      connection.in().Consume(step.consumed);
      if (answer.body.size() > max_answer) {
        co_return Fail(Blame::kPeer, "the answer is longer than {} bytes", max_answer);
      }
    }
    if (have_head && connection.body().done()) co_return answer;
    connection.in().Compact();
    const IoResult read = co_await connection.socket().Read(connection.in().room(), deadline);
    if (read.status == IoStatus::kEof && have_head &&
        connection.body().framing() == BodyFraming::kUntilClose) {
      co_return answer;
    }
    if (!read.ok()) co_return Fail(Blame::kPeer, "receive: {}", Describe(read.status));
    connection.MarkStarted();
    connection.in().Commit(read.bytes);
  }
}

}  // namespace fathom
