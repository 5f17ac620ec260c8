// Where a socket is bound or connected to.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace fathom {

class Address {
 public:
  // Parses a numeric IPv4 or IPv6 address; nullopt if `host` is a name.
  static std::optional<Address> Numeric(std::string_view host, uint16_t port);
  static Address Of(const sockaddr* address, socklen_t size);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }
  uint16_t port() const;
  bool loopback() const;
  Address WithPort(uint16_t port) const;
  std::string ToString() const;  // "127.0.0.1:8000", "[::1]:8000"

  friend bool operator==(const Address& a, const Address& b) {
    return a.size_ == b.size_ && std::memcmp(&a.storage_, &b.storage_, a.size_) == 0;
  }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

// "127.0.0.1:9000", "[::1]:9000", "localhost:9000", ":9000".
Result<std::pair<std::string, uint16_t>> SplitHostPort(std::string_view text);

}  // namespace fathom
