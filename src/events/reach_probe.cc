#include "events/reach_probe.h"

#include "net/socket.h"

namespace fathom {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr Duration kPatience = std::chrono::seconds(2);

}  // namespace

Task<FeedReach> ProbeReach(IntakeContext& context, std::string endpoint) {
  if (!endpoint.starts_with(kTcp)) co_return FeedReach::kUnknown;
  const auto place = SplitHostPort(std::string_view(endpoint).substr(kTcp.size()));
  if (!place) co_return FeedReach::kUnknown;
  auto resolving = context.resolver.Resolve(context.loop, place->first, place->second);
  const auto addresses = co_await resolving;
  if (!addresses || addresses->empty()) co_return FeedReach::kUnresolved;
  FeedReach reach = FeedReach::kRefused;
  const TimePoint deadline = context.loop.now() + kPatience;
  for (const Address& address : *addresses) {
    const auto fd = Socket::BeginConnect(address);
    if (!fd) continue;
    Socket socket(context.loop, *fd);
    const IoResult connected = co_await socket.Connected(deadline);
    if (connected.ok()) co_return FeedReach::kOpen;
    if (connected.status == IoStatus::kTimeout) reach = FeedReach::kTimeout;
  }
  co_return reach;
}

}  // namespace fathom
