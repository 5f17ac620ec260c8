#include "diagnose/logs/log_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace fathom {
namespace {

constexpr size_t kStamp = 19;   // "2026-02-16T14:38:53"
constexpr size_t kFront = 256;  // where a stamp is looked for

bool IsTimeDigit(char c) { return c >= '0' && c <= '9'; }

// A number of exactly that many digits; nothing if they are no digits.
std::optional<unsigned> Digits(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(at, count)) {
    if (!IsTimeDigit(c)) return std::nullopt;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return value;
}

bool LooksLikeStamp(const char* at) {
  return at[4] == '-' && at[7] == '-' && (at[10] == 'T' || at[10] == ' ') && at[13] == ':' &&
         at[16] == ':';
}

// Moves over ".950961" and says how many whole milliseconds that is.
std::chrono::milliseconds TakeFraction(std::string_view text, size_t& at) {
  if (at + 1 >= text.size() || (text[at] != '.' && text[at] != ',') || !IsTimeDigit(text[at + 1])) {
    return {};
  }
  int millis = 0;
  int weight = 100;
  for (++at; at < text.size() && IsTimeDigit(text[at]); ++at) {
    millis += (text[at] - '0') * weight;
    weight /= 10;
  }
  return std::chrono::milliseconds(millis);
}

// "+02:00", "-0530"; Z and no zone at all are UTC.
std::chrono::minutes ZoneAt(std::string_view text, size_t at) {
  if (at >= text.size() || (text[at] != '+' && text[at] != '-')) return {};
  const auto hours = Digits(text, at + 1, 2);
  const size_t colon = at + 3 < text.size() && text[at + 3] == ':' ? 1 : 0;
  const auto minutes = Digits(text, at + 3 + colon, 2);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return {};
  const std::chrono::minutes ahead(static_cast<int>(*hours * 60 + *minutes));
  return text[at] == '+' ? ahead : -ahead;
}

}  // namespace

std::optional<LogTime> ReadTime(std::string_view text) {
  if (text.size() < kStamp || !LooksLikeStamp(text.data())) return std::nullopt;
  const auto year = Digits(text, 0, 4);
  const auto month = Digits(text, 5, 2);
  const auto day = Digits(text, 8, 2);
  const auto hour = Digits(text, 11, 2);
  const auto minute = Digits(text, 14, 2);
  const auto second = Digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  size_t at = kStamp;
  const auto fraction = TakeFraction(text, at);
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second) + fraction - ZoneAt(text, at);
}

std::optional<LogTime> FindTime(std::string_view text) {
  const std::string_view front = text.substr(0, std::min(text.size(), kFront));
  for (size_t at = 0; at + kStamp <= front.size(); ++at) {
    if (!LooksLikeStamp(front.data() + at)) continue;
    if (const auto time = ReadTime(text.substr(at))) return time;
  }
  return std::nullopt;
}

std::string ToText(LogTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

}  // namespace fathom
