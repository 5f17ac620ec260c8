// What do operators see? The fleet's health, the metrics, the worker list and the debug pages.
//
// Threads  One each: the control loop.
#pragma once

#include <string_view>

#include "io/http/server_connection.h"
#include "router/gateway/debug_pages.h"
#include "router/gateway/gateway_context.h"

namespace fathom {

// A request whose sender was let in.
struct PageQuestion {
  const RequestHead& head;
  std::string_view path;
  std::string_view body;
  bool whole_health = false;  // /health with its workers
  bool with_urls = false;     // /metrics with their URLs

  bool gets() const { return head.method == "GET" || head.method == "HEAD"; }
};

class OperatorPages {
 public:
  OperatorPages(GatewayContext& context, Loop& loop) : context_(context), debug_(context, loop) {}

  // Whether there is a page of that path that takes a body.
  static bool TakesBody(const RequestHead& head, std::string_view path);

  Task<Answer> Make(const PageQuestion& question);

 private:
  Answer Metrics(bool with_urls) const;
  Answer Workers(const PageQuestion& question);
  Answer AddWorker(std::string_view body);
  Answer AddName(const WorkerRequest& request);
  Answer RemoveWorker(std::string_view id);
  Task<Answer> Debug(const PageQuestion& question);

  GatewayContext& context_;
  DebugPages debug_;
};

}  // namespace fathom
