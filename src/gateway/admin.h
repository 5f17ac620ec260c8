// The pages that are not inference: liveness, readiness, health, metrics, models, the worker list
// and what is known of the workers' caches.
#pragma once

#include <string_view>

#include "gateway/debug_pages.h"
#include "gateway/gateway_context.h"
#include "http/server_connection.h"

namespace fathom {

class AdminPages {
 public:
  // kPublic leaves out what only operators should see: worker addresses and the worker list.
  enum class Scope : uint8_t { kAll, kPublic };

  AdminPages(GatewayContext& context, Loop& loop) : context_(context), debug_(context, loop) {}

  // Reads a body only where one is wanted, from somebody who may send it.
  Task<void> Serve(ServerConnection& connection, std::string_view path, Scope scope);

 private:
  Answer Respond(const RequestHead& head, std::string_view path, std::string_view body,
                 Scope scope);
  bool WantsBody(const RequestHead& head, std::string_view path, Scope scope) const;
  bool WantsExplanation(const RequestHead& head, std::string_view path, Scope scope) const;
  Answer Models(std::string_view path) const;
  Answer Workers(const RequestHead& head, std::string_view path, std::string_view body);
  Answer AddWorker(std::string_view body);
  Answer AddName(const WorkerRequest& request);
  Answer RemoveWorker(std::string_view id);
  Answer Debug(const RequestHead& head, std::string_view path, std::string_view body);

  GatewayContext& context_;
  DebugPages debug_;
};

// The admin listener's handler.
class AdminHandler final : public HttpHandler {
 public:
  AdminHandler(GatewayContext& context, Loop& loop) : pages_(context, loop) {}

  Task<void> Handle(ServerConnection& connection) override;
  Answer Refuse(const RequestProblem& problem) override;

 private:
  AdminPages pages_;
};

}  // namespace fathom
