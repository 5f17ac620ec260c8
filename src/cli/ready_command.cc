// fathom ready: can the running router route requests?
//
// For health checks in images that have neither a shell nor curl. One GET /ready, one line.
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/peer_text.h"
#include "cli/command.h"
#include "cli/router_url.h"
#include "codec/json.h"
#include "codec/percent_encode.h"
#include "diagnose/doctor/page_members.h"
#include "diagnose/doctor/read_only_client.h"
#include "io/net/loop.h"
#include "io/net/resolver.h"
#include "io/net/task.h"

namespace fathom {
namespace {

using ReadyAnswer = std::optional<Result<FetchAnswer>>;

void SayWhyNot(std::string_view what) { fmt::print(stderr, "fathom ready: {}\n", what); }

// Of the router, or of one of its workers.
std::string ReadyPath(const std::string& worker) {
  if (worker.empty()) return "/ready";
  return "/ready?worker=" + PercentEncode(worker);
}

Task<void> AskIfReady(Loop& loop, ReadOnlyClient& client, std::string path, ReadyAnswer& answer) {
  auto asking = client.Get(path);
  answer = co_await asking;
  loop.Stop();
}

std::string WhyNotReady(const Result<FetchAnswer>& answer) {
  if (!answer) return Shown(answer.error().what);
  if (answer->status != 503) return fmt::format("answered {}, not 200", answer->status);
  const auto page = Json::Parse(answer->body);
  const std::string reason = page ? TextOf(*page, "reason") : "";
  return reason.empty() ? "not ready" : fmt::format("not ready: {}", reason);
}

}  // namespace

int RunReady(const Settings& settings) {
  const std::vector<std::string>& urls = settings.List("url");
  if (urls.size() > 1) {
    SayWhyNot("asks one router; give one URL");
    return kExitUsage;
  }
  const std::string url = urls.empty() ? RouterUrl(settings.Text("host"),
                                                   static_cast<uint16_t>(settings.Integer("port")))
                                       : urls[0];
  auto endpoint = EndpointOf(url, settings.Text("ca-file"));
  if (!endpoint) {
    SayWhyNot(endpoint.error().what);
    return kExitUsage;
  }
  const std::string& worker = settings.Text("worker");
  // An unset variable of a script must not become a question about the router.
  if (worker.empty() && settings.OriginOf("worker") != "default") {
    SayWhyNot("--worker is empty; write the worker's URL, http://HOST:PORT");
    return kExitUsage;
  }
  Loop loop;
  Resolver resolver;
  SentRequests sent;
  ReadOnlyClient client(loop, resolver, sent,
                        {.server = ServerKind::kRouter,
                         .endpoint = *std::move(endpoint),
                         .key = "",
                         .patience = settings.Time("timeout")});
  ReadyAnswer answer;
  loop.Post([&] { Spawn(AskIfReady(loop, client, ReadyPath(worker), answer)); });
  loop.Run();
  if (*answer && (*answer)->status == 200) {
    fmt::print("{}: ready\n", worker.empty() ? client.url() : worker);
    return kExitFine;
  }
  SayWhyNot(fmt::format("{}: {}", client.url(), WhyNotReady(*answer)));
  return kExitFailed;
}

}  // namespace fathom
