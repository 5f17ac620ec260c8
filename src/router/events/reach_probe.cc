#include "router/events/reach_probe.h"

#include "io/net/connect_race.h"

namespace fathom {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr Duration kPatience = std::chrono::seconds(2);

}  // namespace

Task<FeedReach> ProbeReach(IntakeContext& context, std::string endpoint) {
  if (!endpoint.starts_with(kTcp)) co_return FeedReach::kUnknown;
  const auto place = SplitHostPort(std::string_view(endpoint).substr(kTcp.size()));
  if (!place) co_return FeedReach::kUnknown;
  const TimePoint deadline = context.loop.now() + kPatience;
  auto resolving = context.resolver.Resolve(context.loop, place->first, place->second, deadline);
  auto addresses = co_await resolving;
  if (!addresses || addresses->empty()) co_return FeedReach::kUnresolved;
  auto connecting = ConnectFirst(context.loop, *std::move(addresses), deadline);
  const auto connected = co_await connecting;
  if (connected) co_return FeedReach::kOpen;
  co_return connected.error().cause == NetCause::kTimeout ? FeedReach::kTimeout
                                                          : FeedReach::kRefused;
}

}  // namespace fathom
