#include "io/net/host_name.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(HostName, AcceptsWhatIsUsedInFleets) {
  for (const std::string_view name :
       {"a", "worker-1", "vllm_engine_1", "Engines.Prod.SVC", "a.b.", "0a1b2c3d4e5f",
        "123456789012", "1.pool.test", "xn--bcher-kva.example"}) {
    EXPECT_TRUE(IsHostName(name)) << name;
  }
  EXPECT_TRUE(IsHostName(std::string(63, 'x') + ".test"));
  EXPECT_TRUE(IsHostName(std::string(63, 'x') + "." + std::string(63, 'x') + "." +
                         std::string(63, 'x') + "." + std::string(61, 'x')));
}

TEST(HostName, RefusesWhatNoNameServerMayBeAsked) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string("a..b"), std::string(".a"), std::string("a.."),
        std::string("no such host"), std::string("a/b"), std::string("a\0b", 3),
        std::string("b\xc3\xbc.test"), std::string("a\n"), std::string("*.test"),
        std::string(64, 'x') + ".test", std::string(300, 'x')}) {
    EXPECT_FALSE(IsHostName(name)) << name;
  }
  EXPECT_FALSE(IsHostName(std::string(63, 'x') + "." + std::string(63, 'x') + "." +
                          std::string(63, 'x') + "." + std::string(62, 'x')));
}

TEST(HostName, RefusesAMisspelledIpv4Address) {
  EXPECT_FALSE(IsHostName("127.1"));
  EXPECT_FALSE(IsHostName("10.0.0.256"));
  EXPECT_FALSE(IsHostName("10.0.0.1.2"));
}

TEST(HostName, KnowsTheNamesOfThisMachine) {
  EXPECT_TRUE(IsLocalhost("localhost"));
  EXPECT_TRUE(IsLocalhost("LocalHost."));
  EXPECT_TRUE(IsLocalhost("engine.localhost"));
  EXPECT_FALSE(IsLocalhost("localhost.test"));
  EXPECT_FALSE(IsLocalhost("notlocalhost"));
}

}  // namespace
}  // namespace fathom
