#include "io/net/address_range.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

bool Has(std::string_view range, std::string_view address) {
  const auto parsed = AddressRange::Parse(range);
  EXPECT_TRUE(parsed) << range;
  return parsed && parsed->Contains(*Address::Numeric(address, 5557));
}

TEST(AddressRange, ContainsTheAddressesOfItsNetworkAlone) {
  EXPECT_TRUE(Has("10.0.0.0/8", "10.255.3.1"));
  EXPECT_FALSE(Has("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(Has("192.168.16.0/20", "192.168.31.255"));
  EXPECT_FALSE(Has("192.168.16.0/20", "192.168.32.0"));
  EXPECT_TRUE(Has("0.0.0.0/0", "8.8.8.8"));
  EXPECT_FALSE(Has("0.0.0.0/0", "2001:db8::1")) << "all of IPv4 is not all of IPv6";
  EXPECT_TRUE(Has("::/0", "2001:db8::1"));
  EXPECT_TRUE(Has("fd00::/8", "fd12::1"));
  EXPECT_FALSE(Has("fd00::/8", "fe80::1"));
}

TEST(AddressRange, IsOneAddressWithoutALength) {
  EXPECT_TRUE(Has("192.168.1.7", "192.168.1.7"));
  EXPECT_FALSE(Has("192.168.1.7", "192.168.1.6"));
  EXPECT_TRUE(Has("::1", "::1"));
}

TEST(AddressRange, SeesTheIPv4AddressOfAPeerOnAnIPv6Socket) {
  EXPECT_TRUE(Has("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_FALSE(Has("10.0.0.0/8", "::ffff:12.1.2.3"));
}

TEST(AddressRange, RefusesWhatIsNoNetwork) {
  for (const char* wrong : {"", "/", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "::/129", "host",
                            "10.0.0.0/8/8", "10.0.0.0/-1", "0x0a000000/8"}) {
    const auto parsed = AddressRange::Parse(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().what,
              fmt::format("'{}' is not a network; write 10.0.0.0/8 or fd00::/8", wrong));
  }
}

}  // namespace
}  // namespace fathom
