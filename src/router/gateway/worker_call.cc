#include "router/gateway/worker_call.h"

#include <array>

#include "base/text_builder.h"

namespace fathom {
namespace {

std::string HeadOf(const WorkerSpec& spec, std::string_view path, size_t body) {
  std::string head;
  head.append("POST ").append(spec.base_path).append(path);
  head.append(" HTTP/1.1\r\nhost: ").append(spec.host_header);
  if (!spec.api_key.empty()) head.append("\r\nauthorization: Bearer ").append(spec.api_key);
  head.append("\r\ncontent-type: application/json\r\ncontent-length: ");
  head.append(Decimal(body).text()).append("\r\n\r\n");
  return head;
}

}  // namespace

Task<Result<FetchAnswer>> WorkerCalls::Post(const Worker& worker, std::string_view path,
                                            std::string_view body, size_t max_answer,
                                            TimePoint deadline) {
  pool_.Sweep();
  const std::string head = HeadOf(worker.spec(), path, body.size());
  std::unique_ptr<ClientConnection> connection = pool_.Take(worker.id());
  for (;;) {
    const bool kept = connection != nullptr;
    if (!kept) {
      auto opening = Open(worker.id(), deadline);
      auto opened = co_await opening;
      if (!opened) co_return std::unexpected(std::move(opened).error());
      connection = *std::move(opened);
    }
    auto conversing = Converse(*connection, head, body, max_answer, deadline);
    auto answer = co_await conversing;
    if (answer) {
      if (connection->Reusable()) pool_.Put(worker.id(), std::move(connection));
      co_return answer;
    }
    if (!kept || connection->answer_started() || loop_.now() >= deadline) co_return answer;
    connection.reset();
  }
}

Task<Result<std::unique_ptr<ClientConnection>>> WorkerCalls::Open(WorkerId id, TimePoint deadline) {
  const std::shared_ptr<const Endpoint> endpoint = directory_.Find(id);
  if (!endpoint) co_return Fail(Blame::kPeer, "the worker has left");
  auto connection = std::make_unique<ClientConnection>(loop_);
  auto opening = connection->Open(*endpoint, resolver_, deadline);
  auto opened = co_await opening;
  if (!opened) co_return std::unexpected(std::move(opened).error());
  co_return connection;
}

Task<Result<FetchAnswer>> WorkerCalls::Converse(ClientConnection& connection, std::string_view head,
                                                std::string_view body, size_t max_answer,
                                                TimePoint deadline) {
  connection.BeginAnswer();
  std::array<iovec, 2> parts = {iovec{const_cast<char*>(head.data()), head.size()},
                                iovec{const_cast<char*>(body.data()), body.size()}};
  const IoResult sent = co_await connection.socket().Write(parts, deadline);
  if (!sent.ok()) co_return Fail(Blame::kPeer, "send: {}", Describe(sent.status));
  auto receiving = ReceiveAnswer(connection, false, max_answer, deadline);
  auto answer = co_await receiving;
  co_return answer;
}

}  // namespace fathom
