#include "cli/router_url.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(RouterUrl, IsTheAddressThatTheRouterListensOn) {
  EXPECT_EQ(RouterUrl("10.0.0.7", 8000), "http://10.0.0.7:8000");
  EXPECT_EQ(RouterUrl("router.example", 80), "http://router.example:80");
  EXPECT_EQ(RouterUrl("fd00::7", 8000), "http://[fd00::7]:8000");
}

TEST(RouterUrl, IsOnLoopbackWhereTheRouterListensOnEveryInterface) {
  EXPECT_EQ(RouterUrl("0.0.0.0", 8000), "http://127.0.0.1:8000");
  EXPECT_EQ(RouterUrl("", 8000), "http://127.0.0.1:8000");
  EXPECT_EQ(RouterUrl("::", 8000), "http://[::1]:8000");
}

}  // namespace
}  // namespace fathom
