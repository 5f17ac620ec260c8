#include "io/net/address.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(Address, ReadsNumericAddressesOfBothFamilies) {
  const auto v4 = Address::Numeric("192.0.2.7", 8000);
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->family(), AF_INET);
  EXPECT_EQ(v4->port(), 8000);
  EXPECT_EQ(v4->ToString(), "192.0.2.7:8000");
  const auto v6 = Address::Numeric("2001:DB8::1", 65535);
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->family(), AF_INET6);
  EXPECT_EQ(v6->port(), 65535);
  EXPECT_EQ(v6->ToString(), "[2001:db8::1]:65535");
}

TEST(Address, TakesNothingElseForNumeric) {
  for (const char* text : {"", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "[::1]",
                           "::g", "1.2.3.4 ", "0x7f.0.0.1", ":::"}) {
    EXPECT_FALSE(Address::Numeric(text, 1)) << text;
  }
}

TEST(Address, KnowsTheLoopback) {
  EXPECT_TRUE(Address::Numeric("127.0.0.1", 1)->loopback());
  EXPECT_TRUE(Address::Numeric("127.255.3.4", 1)->loopback());
  EXPECT_TRUE(Address::Numeric("::1", 1)->loopback());
  EXPECT_FALSE(Address::Numeric("0.0.0.0", 1)->loopback());
  EXPECT_FALSE(Address::Numeric("::", 1)->loopback());
  EXPECT_FALSE(Address::Numeric("128.0.0.1", 1)->loopback());
}

TEST(Address, ChangesItsPortAndNothingElse) {
  for (const char* host : {"10.1.2.3", "fe80::2"}) {
    const Address was = *Address::Numeric(host, 1);
    const Address is = was.WithPort(4321);
    EXPECT_EQ(is.port(), 4321);
    EXPECT_EQ(was.port(), 1);
    EXPECT_EQ(is.ToString(), Address::Numeric(host, 4321)->ToString());
  }
}

TEST(Address, SurvivesTheWayThroughTheSystem) {
  const Address was = *Address::Numeric("::1", 99);
  const Address is = Address::Of(was.get(), was.size());
  EXPECT_EQ(is.ToString(), "[::1]:99");
  EXPECT_EQ(is.size(), was.size());
}

TEST(SplitHostPort, ReadsNamesAddressesAndNoHost) {
  const struct {
    const char* text;
    const char* host;
    uint16_t port;
  } cases[] = {{"127.0.0.1:9000", "127.0.0.1", 9000},
               {"[::1]:9000", "::1", 9000},
               {"localhost:0", "localhost", 0},
               {":9000", "", 9000},
               {"a.b-c.example:65535", "a.b-c.example", 65535}};
  for (const auto& c : cases) {
    const auto split = SplitHostPort(c.text);
    ASSERT_TRUE(split) << c.text;
    EXPECT_EQ(split->first, c.host);
    EXPECT_EQ(split->second, c.port);
  }
}

TEST(SplitHostPort, RefusesWhatItCannotReadInOneWay) {
  for (const char* text :
       {"", "localhost", "localhost:", "localhost:65536", "localhost:-1", "localhost:80x", "::1",
        "::1:9000", "[::1]", "[::1:9000", "::1]:9000", "h:99999999999999999999"}) {
    const auto split = SplitHostPort(text);
    ASSERT_FALSE(split) << text;
    EXPECT_EQ(split.error().blame, Blame::kCaller);
  }
}

}  // namespace
}  // namespace fathom
