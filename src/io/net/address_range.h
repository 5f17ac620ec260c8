// Does this address belong to a network?
//
//   10.0.0.0/8, 192.168.1.7, fd00::/8, ::1
//
// An IPv4 address that arrived on an IPv6 socket (::ffff:10.0.0.1) is that IPv4 address.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "io/net/address.h"

namespace fathom {

class AddressRange {
 public:
  static Result<AddressRange> Parse(std::string_view text);
  // This address alone, with any port.
  static AddressRange Of(const Address& address);

  bool Contains(const Address& address) const;

 private:
  // IPv4 is kept as ::ffff:a.b.c.d, so that there is one form.
  using Bytes = std::array<uint8_t, 16>;
  static Bytes BytesOf(const Address& address);

  Bytes bytes_{};
  uint32_t bits_ = 0;  // of `bytes_` that must be equal
};

}  // namespace fathom
