#include "base/secret.h"

#include <gtest/gtest.h>

#include <set>

namespace fathom {
namespace {

TEST(RandomSecret, IsAnotherOneEachTimeAndUsesAllBits) {
  std::set<uint64_t> seen;
  uint64_t ever_set = 0;
  uint64_t ever_clear = 0;
  for (int i = 0; i < 200; ++i) {
    const uint64_t secret = RandomSecret();
    seen.insert(secret);
    ever_set |= secret;
    ever_clear |= ~secret;
  }
  EXPECT_EQ(seen.size(), 200);
  EXPECT_EQ(ever_set & ever_clear, ~uint64_t{0});
}

}  // namespace
}  // namespace fathom
