#include "cli/router_url.h"

#include <fmt/format.h>

namespace fathom {

std::string RouterUrl(std::string_view host, uint16_t port) {
  if (host.empty() || host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  const bool is_ipv6 = host.contains(':');
  return fmt::format("http://{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
}

}  // namespace fathom
