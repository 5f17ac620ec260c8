#include "io/etcd/etcd_address.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(EtcdAddress, HostsPortsAndPrefix) {
  const auto address = EtcdAddress::Parse("etcd://a,b:2380,[fd00::1],[::1]:7/fleet/prod/");
  ASSERT_TRUE(address);
  ASSERT_EQ(address->hosts.size(), 4u);
  EXPECT_EQ(address->hosts[0].ToString(), "http://a:2379");
  EXPECT_EQ(address->hosts[1].ToString(), "http://b:2380");
  EXPECT_EQ(address->hosts[2].ToString(), "http://[fd00::1]:2379");
  EXPECT_EQ(address->hosts[3].port, 7);
  EXPECT_EQ(address->prefix, "fleet/prod/");
  EXPECT_FALSE(address->tls());
  EXPECT_EQ(address->ToString(), "etcd://a:2379,b:2380,[fd00::1]:2379,[::1]:7/fleet/prod");
}

TEST(EtcdAddress, ASlashAtTheFrontOfKeysIsWrittenTwice) {
  EXPECT_EQ(EtcdAddress::Parse("etcd://a/fleet")->prefix, "fleet/");
  EXPECT_EQ(EtcdAddress::Parse("etcd://a//fleet")->prefix, "/fleet/");
  EXPECT_EQ(EtcdAddress::Parse("etcd://a//fleet")->ToString(), "etcd://a:2379//fleet");
  EXPECT_EQ(EtcdAddress::Parse("etcd://a/a%2Cb")->prefix, "a,b/");
  EXPECT_EQ(*EtcdAddress::KeysBelow("fleet"), "fleet/");
  EXPECT_EQ(*EtcdAddress::KeysBelow("/fleet//"), "/fleet/");
}

TEST(EtcdAddress, TlsIsAnotherScheme) {
  const auto address = EtcdAddress::Parse("etcds://a/fleet");
  ASSERT_TRUE(address);
  EXPECT_TRUE(address->tls());
  EXPECT_EQ(address->hosts[0].ToString(), "https://a:2379");
  EXPECT_EQ(address->ToString(), "etcds://a:2379/fleet");
}

TEST(EtcdAddress, WithoutAPrefixItNamesNoKeys) {
  EXPECT_EQ(EtcdAddress::Parse("etcd://a:1")->prefix, "");
  EXPECT_EQ(EtcdAddress::Parse("etcd://a:1/")->prefix, "");
  EXPECT_FALSE(EtcdAddress::KeysBelow("/"));
}

TEST(EtcdAddress, RefusesWhatIsNotOne) {
  for (const char* text : {"http://a/fleet", "etcd://", "etcd:///fleet", "etcd://a,,b/fleet",
                           "etcd://a:x/fleet", "etcd://a b/fleet", "etcd://a?x/fleet"}) {
    EXPECT_FALSE(EtcdAddress::Parse(text)) << text;
  }
  const auto secret = EtcdAddress::Parse("etcd://root:hunter2@a/fleet");
  ASSERT_FALSE(secret);
  EXPECT_FALSE(secret.error().what.contains("hunter2"));
  EXPECT_TRUE(secret.error().what.contains("--etcd-password-file"));
}

}  // namespace
}  // namespace fathom
