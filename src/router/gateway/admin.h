// What does a listener answer itself, beside inference? /live, /ready and the models at once; the
// pages for operators come from the control loop, once their reader was let in.
#pragma once

#include <optional>
#include <string_view>

#include "io/http/server_connection.h"
#include "router/gateway/admin_door.h"
#include "router/gateway/gateway_context.h"
#include "router/gateway/page_desk.h"

namespace fathom {

class AdminPages {
 public:
  // Whether the metrics of this listener contain the URLs of workers.
  enum class Urls : uint8_t { kHidden, kShown };

  // `rules` are those of the listener.
  AdminPages(GatewayContext& context, Loop& loop, PageDesk& desk, const AdminRules& rules,
             Urls urls)
      : context_(context),
        loop_(loop),
        desk_(desk),
        door_(context.admin_keys, rules),
        urls_(urls) {}

  // Reads a body only if the page takes one, and only after the caller was authorized.
  Task<void> Serve(ServerConnection& connection, std::string_view path);

 private:
  std::optional<Answer> Quick(const RequestHead& head, std::string_view path) const;
  Answer Models(std::string_view path) const;
  Task<Answer> AskDesk(const RequestHead& head, std::string_view path, std::string_view body);

  GatewayContext& context_;
  Loop& loop_;
  PageDesk& desk_;
  const AdminDoor door_;
  const Urls urls_;
};

// The admin listener's handler.
class AdminHandler final : public HttpHandler {
 public:
  AdminHandler(GatewayContext& context, Loop& loop, PageDesk& desk)
      : pages_(context, loop, desk, context.options.admin_listener, AdminPages::Urls::kShown) {}

  Task<void> Handle(ServerConnection& connection) override;
  Answer Refuse(const RequestProblem& problem) override;

 private:
  AdminPages pages_;
};

}  // namespace fathom
