#include "diagnose/doctor/gpu_page.h"

#include <algorithm>
#include <utility>

#include "diagnose/doctor/read_only_client.h"

namespace fathom {
namespace {

Task<void> Fetched(ReadOnlyClient& client, Result<std::string>& page) {
  auto asking = client.Get("/metrics");
  auto answer = co_await asking;
  const std::string problem = WhyNot(answer, "--api-key");
  if (problem.empty()) {
    page = std::move(answer->body);
  } else {
    page = Fail(Blame::kPeer, "{}", problem);
  }
  client.loop().Stop();
}

}  // namespace

Result<std::string> FetchGpuPage(std::string url, const LiveTargets& manner,
                                 std::vector<SentRequest>& sent) {
  // People copy the whole address of the page.
  constexpr std::string_view kPath = "/metrics";
  if (url.ends_with(kPath)) url.resize(url.size() - kPath.size());
  TRY(Endpoint endpoint, EndpointOf(url, manner.ca_file));
  Loop loop;
  Resolver resolver;
  SentRequests requests;
  ReadOnlyClient::Target target;
  target.server = ServerKind::kExporter;
  target.endpoint = std::move(endpoint);
  target.patience = manner.patience;
  ReadOnlyClient client(loop, resolver, requests, std::move(target));
  Result<std::string> page;
  loop.Post([&] { Spawn(Fetched(client, page)); });
  loop.Run();
  std::ranges::copy(requests.All(), std::back_inserter(sent));
  return page;
}

}  // namespace fathom
