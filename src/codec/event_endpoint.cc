#include "codec/event_endpoint.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace fathom {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";
constexpr uint64_t kMaxPort = 65535;
constexpr size_t kMaxEndpoint = 512;

bool IsOdd(unsigned char c) { return c <= 0x20 || c >= 0x7f; }

// ';' would separate a source address, '/' and '@' have no meaning to libzmq.
bool IsEndpointHost(std::string_view host) {
  return !host.empty() && host.find_first_of(";/@?#") == host.npos;
}

std::string Readable(std::string_view text) {
  std::string shown(text.substr(0, 80));
  std::ranges::replace_if(shown, IsOdd, '?');
  return shown;
}

}  // namespace

std::optional<TcpEventEndpoint> TcpEventEndpoint::Parse(std::string_view endpoint) {
  if (!endpoint.starts_with(kTcp)) return std::nullopt;
  endpoint.remove_prefix(kTcp.size());
  const size_t colon = endpoint.rfind(':');
  if (colon == endpoint.npos || !IsEndpointHost(endpoint.substr(0, colon))) return std::nullopt;
  const auto port = ParseDecimal(endpoint.substr(colon + 1));
  if (!port || *port == 0 || *port > kMaxPort) return std::nullopt;
  return TcpEventEndpoint{endpoint.substr(0, colon), static_cast<uint16_t>(*port)};
}

Result<void> CheckEventEndpoint(std::string_view endpoint) {
  const bool fits = endpoint.size() <= kMaxEndpoint && !std::ranges::any_of(endpoint, IsOdd);
  const bool ipc = endpoint.starts_with(kIpc) && endpoint.size() > kIpc.size();
  if (fits && (ipc || TcpEventEndpoint::Parse(endpoint))) return {};
  return Fail(Blame::kCaller, "'{}' is not an endpoint: write tcp://HOST:PORT or ipc://PATH",
              Readable(endpoint));
}

}  // namespace fathom
