// The OpenAI API on one loop: what kind of request is it, is it allowed, and what answers it?
#pragma once

#include <array>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "io/http/connection_pool.h"
#include "io/http/server_connection.h"
#include "router/gateway/admin.h"
#include "router/gateway/gateway_context.h"
#include "router/gateway/loop_router.h"
#include "router/gateway/pass_routes.h"
#include "router/gateway/request_fields.h"

namespace fathom {

class Exchange;

// The client's own x-request-id, or one generated in `room`.
std::string_view RequestIdOf(const RequestHead& head, Random& random, std::array<char, 32>& room);

class Gateway final : public HttpHandler {
 public:
  Gateway(GatewayContext& context, Loop& loop, PageDesk& desk, uint64_t seed);
  ~Gateway();

  Task<void> Handle(ServerConnection& connection) override;
  Answer Refuse(const RequestProblem& problem) override;
  // In the shape of the API's errors.
  static Answer RefuseAs(AnswerForm form, const RequestProblem& problem);

  // Checks the requests in flight on this loop and the connections in its pool, until the loop
  // stops.
  Task<void> Housekeep();

 private:
  friend class Exchange;

  // Passes a request of that route to a worker.
  Task<void> Pass(ServerConnection& connection, const PassedRoute& route);
  std::optional<Answer> RefuseAtTheDoor(ServerConnection& connection, const PassedRoute& route);
  std::expected<RequestFields, Answer> ReadFields(const RequestHead& head, const PassedRoute& route,
                                                  std::string_view body) const;
  Task<std::expected<std::string_view, RequestProblem>> ReadBody(ServerConnection& connection);
  void DoubtWorker(WorkerId id);

  GatewayContext& context_;
  Loop& loop_;
  AdminPages admin_;
  ConnectionPool pool_;
  LoopRouter router_;
  Random ids_;  // of requests; not by --seed, so that no two routers make the same ones
  Exchange* exchanges_ = nullptr;  // requests in flight, an intrusive list
};

}  // namespace fathom
