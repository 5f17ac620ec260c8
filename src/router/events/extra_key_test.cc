#include "router/events/extra_key.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(ExtraKey, OfADecimalIsThatNumber) {
  EXPECT_EQ(ExtraKeyOf("0"), 0u);
  EXPECT_EQ(ExtraKeyOf("18446744073709551615"), UINT64_MAX);
}

TEST(ExtraKey, OfAnythingElseIsItsHash) {
  EXPECT_EQ(ExtraKeyOf(""), 0x2d06800538d394c2u);  // XXH3-64 of nothing, as published
  EXPECT_NE(ExtraKeyOf("18446744073709551616"), 0u);
  EXPECT_NE(ExtraKeyOf("1f"), ExtraKeyOf("2f"));
}

}  // namespace
}  // namespace fathom
