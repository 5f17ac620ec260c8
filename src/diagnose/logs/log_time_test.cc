#include "diagnose/logs/log_time.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

std::string Read(std::string_view text) {
  const auto time = ReadTime(text);
  return time ? ToText(*time) : "none";
}

TEST(LogTime, ReadsTheStampsOfTheLogsThatWeKnow) {
  EXPECT_EQ(Read("2026-02-16T14:38:53.950961Z  INFO x"), "2026-02-16T14:38:53.950Z");
  EXPECT_EQ(Read("2026-02-16T14:38:53Z"), "2026-02-16T14:38:53.000Z");
  EXPECT_EQ(Read("2025-09-03 18:33:18 TP0] Prefill"), "2025-09-03T18:33:18.000Z");
  EXPECT_EQ(Read("2025-08-21 07:17:09,753 INFO"), "2025-08-21T07:17:09.753Z");
  EXPECT_EQ(Read("2024-02-29T00:00:00.5Z"), "2024-02-29T00:00:00.500Z");
}

TEST(LogTime, CountsInUtcWhateverTheZone) {
  EXPECT_EQ(Read("2026-02-16T14:38:53.000+02:00"), "2026-02-16T12:38:53.000Z");
  EXPECT_EQ(Read("2026-02-16T22:38:53-0530"), "2026-02-17T04:08:53.000Z");
  EXPECT_EQ(Read("2026-02-16T14:38:53+99:99"), "2026-02-16T14:38:53.000Z");
}

TEST(LogTime, TakesNoDayThatThereIsNot) {
  EXPECT_EQ(Read("2026-02-30T14:38:53Z"), "none");
  EXPECT_EQ(Read("2026-13-01T14:38:53Z"), "none");
  EXPECT_EQ(Read("2026-02-16T24:38:53Z"), "none");
  EXPECT_EQ(Read("2026-02-16T14:3x:53Z"), "none");
  EXPECT_EQ(Read("2026-02-16T14:38:5"), "none");
  EXPECT_EQ(Read(""), "none");
}

TEST(LogTime, IsFoundBehindAPrefix) {
  const auto time = FindTime("[pod/frontend-0/main] 2026-02-16T14:38:53.950961Z  INFO x");
  ASSERT_TRUE(time);
  EXPECT_EQ(ToText(*time), "2026-02-16T14:38:53.950Z");
  EXPECT_FALSE(FindTime("INFO 02-16 14:30:02 [kv_cache_utils.py:524] no year"));
  EXPECT_FALSE(FindTime(std::string(300, ' ') + "2026-02-16T14:38:53Z"));
}

}  // namespace
}  // namespace fathom
