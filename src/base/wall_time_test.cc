#include "base/wall_time.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(WallTime, IsWrittenAsCalendarsHaveIt) {
  const std::string now = WallTimeNow();
  ASSERT_EQ(now.size(), std::string_view("2026-03-01T12:00:00.000Z").size());
  EXPECT_EQ(now[10], 'T');
  EXPECT_EQ(now.back(), 'Z');
}

TEST(WallTime, OfAnEarlierMomentIsEarlier) {
  const TimePoint now = std::chrono::steady_clock::now();
  EXPECT_LT(WallTime(now - std::chrono::hours(1)), WallTime(now));
  EXPECT_NE(WallTime(now - std::chrono::hours(24)).substr(0, 10), WallTime(now).substr(0, 10));
}

}  // namespace
}  // namespace fathom
