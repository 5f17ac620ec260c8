#include "base/wall_time.h"

#include <fmt/format.h>
#include <time.h>

namespace fathom {
namespace {

std::string Format(std::chrono::system_clock::time_point at) {
  const auto since = at.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(since - seconds);
  const time_t whole = seconds.count();
  tm parts{};
  gmtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     millis.count());
}

}  // namespace

std::string WallTimeNow() { return Format(std::chrono::system_clock::now()); }

std::string WallTime(TimePoint at) {
  const Duration age = std::chrono::steady_clock::now() - at;
  const auto then = std::chrono::system_clock::now() - age;
  return Format(std::chrono::time_point_cast<std::chrono::system_clock::duration>(then));
}

int64_t LocalSecondsNow() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return static_cast<int64_t>(now) + local.tm_gmtoff;
}

}  // namespace fathom
