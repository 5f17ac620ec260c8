#include "io/nats/nats_hello.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/version.h"

namespace fathom {
namespace {

using ::testing::StartsWith;

TEST(NatsInfo, HasWhatTheServerDemands) {
  const auto info = NatsInfo::Parse(
      R"({"server_id":"N","max_payload":1000,"tls_required":true,"nonce":"abc","connect_urls":[]})");
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->tls_required);
  EXPECT_FALSE(info->tls_available);
  EXPECT_EQ(info->nonce, "abc");
  EXPECT_EQ(info->max_payload, 1000u);
}

TEST(NatsInfo, IgnoresWhatHasAnotherType) {
  const auto info = NatsInfo::Parse(R"({"max_payload":-5,"tls_required":"yes","nonce":7})");
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->tls_required);
  EXPECT_EQ(info->nonce, "");
  EXPECT_EQ(info->max_payload, NatsInfo().max_payload);
  EXPECT_FALSE(NatsInfo::Parse("[]"));
  EXPECT_FALSE(NatsInfo::Parse("{"));
}

TEST(NatsPlace, IsInAUrl) {
  EXPECT_EQ(NatsPlace::Parse("nats://h:4222")->host, "h");
  EXPECT_FALSE(NatsPlace::Parse("nats://h:4222")->tls);
  EXPECT_TRUE(NatsPlace::Parse("tls://h:4222")->tls);
  EXPECT_EQ(NatsPlace::Parse("tls://[::1]:4222")->host, "::1");
  EXPECT_EQ(NatsPlace::Parse("tls://[::1]:4222")->port, 4222);
  EXPECT_FALSE(NatsPlace::Parse("http://h:4222"));
  EXPECT_FALSE(NatsPlace::Parse("h:4222"));
}

TEST(NatsHello, SaysWhoWeAreAndWhatWeWantToHear) {
  const auto hello =
      NatsHello({.urls = {}, .name = "router \"1\"", .user = "ann", .password = "p\r\nPUB x 0"}, {},
                {"a", "b.c"});
  ASSERT_TRUE(hello);
  EXPECT_EQ(*hello,
            "CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":false,\"lang\":\"cpp\","
            "\"version\":\"" +
                std::string(kVersion) +
                "\",\"name\":\"router \\\"1\\\"\",\"protocol\":1,\"headers\":false,"
                "\"user\":\"ann\",\"pass\":\"p\\u000d\\nPUB x 0\"}\r\n"
                "SUB a 1\r\nSUB b.c 2\r\nPING\r\n");
}

TEST(NatsHello, NamesTheFileThatIsMissing) {
  const auto hello = NatsHello({.nkey_seed_file = "/nowhere/user.nk"}, {.nonce = "abc"}, {});
  ASSERT_FALSE(hello);
  EXPECT_THAT(hello.error().what, StartsWith("/nowhere/user.nk: "));
}

TEST(NatsSubject, IsOneWord) {
  EXPECT_TRUE(IsNatsSubject("fathom.group.all"));
  EXPECT_FALSE(IsNatsSubject(""));
  EXPECT_FALSE(IsNatsSubject("a b"));
  EXPECT_FALSE(IsNatsSubject("a\r\nPUB b 0"));
}

}  // namespace
}  // namespace fathom
