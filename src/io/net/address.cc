#include "io/net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <cstring>

#include "base/text.h"

namespace fathom {

std::optional<Address> Address::Numeric(std::string_view host, uint16_t port) {
  const std::string text(host);
  Address out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage_);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    out.size_ = sizeof(sockaddr_in);
    return out;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage_);
  if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    out.size_ = sizeof(sockaddr_in6);
    return out;
  }
  return std::nullopt;
}

Address Address::Of(const sockaddr* address, socklen_t size) {
  Address out;
  std::memcpy(&out.storage_, address, size);
  out.size_ = size;
  return out;
}

uint16_t Address::port() const {
  if (family() == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

bool Address::loopback() const {
  if (family() == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
  }
  return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr) >> 24) == 127;
}

Address Address::WithPort(uint16_t port) const {
  Address out = *this;
  if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&out.storage_)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&out.storage_)->sin_port = htons(port);
  }
  return out;
}

std::string Address::ToString() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr, text,
              sizeof(text));
    return fmt::format("[{}]:{}", text, port());
  }
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, text,
            sizeof(text));
  return fmt::format("{}:{}", text, port());
}

Result<std::pair<std::string, uint16_t>> SplitHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  const auto port =
      colon == std::string_view::npos ? std::nullopt : ParseDecimal(text.substr(colon + 1));
  if (!port || *port > 65535) {
    return Fail(Blame::kCaller, "'{}' is not HOST:PORT with a port from 0 to 65535", text);
  }
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return Fail(Blame::kCaller, "'{}': write an IPv6 address in brackets, [::1]:9000", text);
  }
  return std::pair(std::string(host), static_cast<uint16_t>(*port));
}

}  // namespace fathom
