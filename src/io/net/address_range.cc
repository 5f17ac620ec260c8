#include "io/net/address_range.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace fathom {
namespace {

constexpr uint32_t kMappedBits = 96;  // in front of an IPv4 address

}  // namespace

AddressRange::Bytes AddressRange::BytesOf(const Address& address) {
  Bytes bytes{};
  if (address.family() == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.get());
    std::memcpy(bytes.data(), &v6->sin6_addr, bytes.size());
    return bytes;
  }
  bytes[10] = bytes[11] = 0xff;
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.get());
  std::memcpy(bytes.data() + 12, &v4->sin_addr, 4);
  return bytes;
}

Result<AddressRange> AddressRange::Parse(std::string_view text) {
  const size_t slash = text.find('/');
  const auto address = Address::Numeric(text.substr(0, slash), 0);
  const bool v4 = address && address->family() == AF_INET;
  const uint32_t most = v4 ? 32 : 128;
  const auto bits = slash == std::string_view::npos ? std::optional<uint64_t>(most)
                                                    : ParseDecimal(text.substr(slash + 1));
  if (!address || !bits || *bits > most) {
    return Fail(Blame::kCaller, "'{}' is not a network; write 10.0.0.0/8 or fd00::/8", text);
  }
  AddressRange range;
  range.bytes_ = BytesOf(*address);
  range.bits_ = static_cast<uint32_t>(*bits) + (v4 ? kMappedBits : 0);
  return range;
}

AddressRange AddressRange::Of(const Address& address) {
  AddressRange range;
  range.bytes_ = BytesOf(address);
  range.bits_ = 8 * range.bytes_.size();
  return range;
}

bool AddressRange::Contains(const Address& address) const {
  const Bytes other = BytesOf(address);
  const size_t whole = bits_ / 8;
  if (!std::equal(bytes_.begin(), bytes_.begin() + whole, other.begin())) return false;
  if (bits_ % 8 == 0) return true;
  const auto mask = static_cast<uint8_t>(0xff << (8 - bits_ % 8));
  return ((bytes_[whole] ^ other[whole]) & mask) == 0;
}

}  // namespace fathom
