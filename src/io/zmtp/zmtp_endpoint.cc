#include "io/zmtp/zmtp_endpoint.h"

#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "io/net/listen_address.h"

namespace fathom {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";

// A path that begins with '@' is a name in Linux's abstract namespace.
std::optional<Address> PathAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) return std::nullopt;
  std::memcpy(address.sun_path, path.data(), path.size());
  const bool abstract = path[0] == '@';
  if (abstract) address.sun_path[0] = '\0';
  const size_t size = offsetof(sockaddr_un, sun_path) + path.size() + (abstract ? 0 : 1);
  return Address::Of(reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size));
}

}  // namespace

Result<ZmtpEndpoint> ZmtpEndpoint::Parse(std::string_view text) {
  ZmtpEndpoint endpoint;
  if (text.starts_with(kIpc)) {
    endpoint.ipc = true;
    endpoint.host = text.substr(kIpc.size());
    if (PathAddress(endpoint.host)) return endpoint;
  } else if (text.starts_with(kTcp)) {
    const auto place = SplitHostPort(text.substr(kTcp.size()));
    if (place && !place->first.empty()) {
      endpoint.host = place->first;
      endpoint.port = place->second;
      return endpoint;
    }
  }
  return Fail(Blame::kCaller, "'{}' is not a ZeroMQ endpoint; write tcp://HOST:PORT", text);
}

Task<Result<std::vector<Address>>> ZmtpEndpoint::Resolve(Loop& loop, Resolver& resolver) const {
  if (ipc) co_return std::vector<Address>{*PathAddress(host)};
  auto resolving = resolver.Resolve(loop, host, port);
  auto addresses = co_await resolving;
  co_return addresses;
}

Result<std::vector<Address>> ZmtpEndpoint::ToBind() const {
  if (ipc) return Fail(Blame::kCaller, "'ipc://{}' cannot be bound; write tcp://*:PORT", host);
  // On most machines [::] takes IPv4 connections too.
  if (host == "*")
    return std::vector{*Address::Numeric("::", port), *Address::Numeric("0.0.0.0", port)};
  const auto address = ListenAddress(host, port);
  if (address) return std::vector{*address};
  return Fail(Blame::kCaller, "cannot bind '{}': {}; write tcp://*:PORT", host,
              address.error().what);
}

}  // namespace fathom
