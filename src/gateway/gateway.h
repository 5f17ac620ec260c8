// The OpenAI API on one loop: which kind of request is this, may it come in, and who answers it?
#pragma once

#include <array>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/admin.h"
#include "gateway/gateway_context.h"
#include "gateway/loop_router.h"
#include "http/connection_pool.h"
#include "http/server_connection.h"

namespace fathom {

class Exchange;

// The path (and query) of a request target, which may be written with scheme and host before it.
std::string_view OriginForm(std::string_view target);

// The client's own x-request-id, or one that is made in `room`.
std::string_view RequestIdOf(const RequestHead& head, Random& random, std::array<char, 32>& room);

class Gateway final : public HttpHandler {
 public:
  Gateway(GatewayContext& context, Loop& loop, uint64_t seed);
  ~Gateway();

  Task<void> Handle(ServerConnection& connection) override;
  Answer Refuse(const RequestProblem& problem) override;

  // Looks after what is in flight on this loop and what lies in its pool, until the loop stops.
  Task<void> Housekeep();

 private:
  friend class Exchange;

  std::optional<Answer> RefuseAtTheDoor(ServerConnection& connection);
  Task<std::expected<std::string_view, RequestProblem>> ReadBody(ServerConnection& connection);

  GatewayContext& context_;
  Loop& loop_;
  AdminPages admin_;
  ConnectionPool pool_;
  LoopRouter router_;
  Random ids_;
  Exchange* exchanges_ = nullptr;  // those in flight, linked through themselves
};

}  // namespace fathom
