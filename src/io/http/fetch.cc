#include "io/http/fetch.h"

#include <fmt/format.h>

namespace fathom {
namespace {

std::unexpected<NetError> Unreadable(Error error) {
  return std::unexpected(NetError{std::move(error), NetCause::kBadAnswer});
}

enum class Afterwards : uint8_t { kClose, kKeep };

// Sends the request on an open connection and receives the answer.
Task<NetResult<FetchAnswer>> Converse(ClientConnection& connection, const Endpoint& endpoint,
                                      const FetchRequest& request, Afterwards afterwards,
                                      TimePoint deadline) {
  std::string out;
  AppendRequestHead(out, request.method, endpoint.Called(), request.path);
  if (afterwards == Afterwards::kClose) out += "connection: close\r\n";
  for (const auto& [name, value] : request.headers) {
    out.append(name).append(": ").append(value).append("\r\n");
  }
  if (!request.body.empty()) {
    fmt::format_to(std::back_inserter(out),
                   "content-type: application/json\r\ncontent-length: {}\r\n", request.body.size());
  } else if (request.method == "POST") {
    out += "content-length: 0\r\n";
  }
  out.append("\r\n").append(request.body);
  connection.BeginAnswer();
  const IoResult sent = co_await connection.socket().Write(out, deadline);
  if (!sent.ok()) co_return NetFail(CauseOf(sent.status), "send: {}", Describe(sent.status));
  auto receiving = ReceiveAnswer(connection, request.method == "HEAD", request.max_answer, deadline,
                                 request.wanted);
  auto answer = co_await receiving;
  co_return answer;
}

}  // namespace

void AppendRequestHead(std::string& out, std::string_view method, const Url& url,
                       std::string_view path) {
  out.append(method).append(" ").append(url.path).append(path).append(" HTTP/1.1\r\nhost: ");
  out.append(url.HostHeader()).append("\r\n");
}

Task<NetResult<FetchAnswer>> Fetch(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                   const FetchRequest& request, TimePoint deadline) {
  ClientConnection connection(loop);
  auto opening = connection.Open(endpoint, resolver, deadline);
  auto opened = co_await opening;
  if (!opened) co_return std::unexpected(std::move(opened).error());
  auto asking = Converse(connection, endpoint, request, Afterwards::kClose, deadline);
  auto answer = co_await asking;
  co_return answer;
}

Task<NetResult<FetchAnswer>> Caller::Fetch(const FetchRequest& request, TimePoint deadline) {
  auto asking = Ask(request, deadline);
  auto answer = co_await asking;
  asked_ = nullptr;
  co_return answer;
}

Task<NetResult<FetchAnswer>> Caller::Ask(const FetchRequest& request, TimePoint deadline) {
  std::unique_ptr<ClientConnection> connection = std::move(kept_);
  if (connection) connection->Wake();
  const bool old = loop_.now() - opened_ >= keep_for_;
  // If the server has closed it, that has been reported while it rested.
  if (connection && (old || !connection->quiet())) connection.reset();
  for (;;) {
    const bool kept = connection != nullptr;
    if (!kept) {
      connection = std::make_unique<ClientConnection>(loop_);
      asked_ = connection.get();
      auto opening = connection->Open(*endpoint_, resolver_, deadline);
      auto opened = co_await opening;
      if (!opened) co_return std::unexpected(std::move(opened).error());
      opened_ = loop_.now();
    }
    asked_ = connection.get();
    auto asking = Converse(*connection, *endpoint_, request, Afterwards::kKeep, deadline);
    auto answer = co_await asking;
    if (answer) {
      if (connection->ClosedUnannounced()) TellLost();
      if (!connection->Reusable()) co_return answer;
      kept_ = std::move(connection);
      kept_->Rest([this](ClientConnection& /*lost*/) { TellLost(); });
      kept_->ReleaseBuffer();
      co_return answer;
    }
    const bool over = connection->cancelled() || loop_.now() >= deadline;
    if (!kept || connection->answer_started() || over) co_return answer;
    TellLost();
    connection.reset();
  }
}

Task<NetResult<FetchAnswer>> ReceiveAnswer(ClientConnection& connection, bool to_head_request,
                                           size_t max_answer, TimePoint deadline,
                                           std::span<const std::string_view> wanted) {
  FetchAnswer answer;
  bool have_head = false;
  for (;;) {
    if (!have_head) {
      auto parsed = connection.ParseHead(to_head_request);
      if (!parsed) co_return Unreadable(std::move(parsed).error());
      have_head = *parsed;
      if (have_head) {
        answer.status = connection.head().status;
        for (const std::string_view name : wanted) {
          const Header* const header = connection.head().headers.Find(name);
          answer.headers.emplace_back(header == nullptr ? std::string_view() : header->value);
        }
        connection.in().Consume(connection.head_size());
      }
    }
    while (have_head && !connection.body().done() && !connection.in().empty()) {
      auto step = connection.body().Feed(connection.in().view());
      if (!step) co_return Unreadable(std::move(step).error());
      answer.body += step->payload;
      connection.in().Consume(step->consumed);
      if (answer.body.size() > max_answer) {
        co_return NetFail(NetCause::kBadAnswer, "the answer is longer than {} bytes", max_answer);
      }
    }
    if (have_head && connection.body().done()) co_return answer;
    connection.in().Compact();
    const IoResult read = co_await connection.socket().Read(connection.in().room(), deadline);
    if (read.status == IoStatus::kEof && have_head &&
        connection.body().framing() == BodyFraming::kUntilClose) {
      co_return answer;
    }
    if (!read.ok()) co_return NetFail(CauseOf(read.status), "receive: {}", Describe(read.status));
    connection.MarkStarted();
    connection.in().Commit(read.bytes);
  }
}

}  // namespace fathom
