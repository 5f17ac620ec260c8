#include "base/renamed.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(Renamed, IsRemovedByTheNextReleaseThatMayRemoveSomething) {
  EXPECT_EQ(RemovedIn("0.1.0"), "0.2.0");
  EXPECT_EQ(RemovedIn("0.9.3"), "0.10.0");
  EXPECT_EQ(RemovedIn("1.4.0"), "2.0.0");
}

TEST(Renamed, IsKeptByPatchesOfItsRelease) {
  EXPECT_TRUE(KeepsFormerName("0.1.0", "0.1.0"));
  EXPECT_TRUE(KeepsFormerName("0.1.0", "0.1.7"));
  EXPECT_FALSE(KeepsFormerName("0.1.0", "0.2.0"));
  EXPECT_FALSE(KeepsFormerName("0.9.0", "1.0.0"));
  EXPECT_TRUE(KeepsFormerName("1.4.0", "1.9.0"));
  EXPECT_FALSE(KeepsFormerName("1.4.0", "2.0.0"));
}

TEST(Renamed, DoesNotComeFromALaterRelease) { EXPECT_FALSE(KeepsFormerName("0.2.0", "0.1.0")); }

}  // namespace
}  // namespace fathom
