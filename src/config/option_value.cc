#include "config/option_value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/text.h"

namespace fathom {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

struct TimeUnit {
  std::string_view name;
  Duration length;
};
// Largest first: a value is written in the largest unit that divides it.
constexpr TimeUnit kTimeUnits[] = {
    {"d", hours(24)},        {"h", hours(1)},         {"m", minutes(1)},     {"s", seconds(1)},
    {"ms", milliseconds(1)}, {"us", microseconds(1)}, {"ns", nanoseconds(1)}};

struct SizeUnit {
  std::string_view name;
  uint64_t bytes;
};
constexpr SizeUnit kSizeUnits[] = {{"TiB", uint64_t{1} << 40},
                                   {"TB", 1'000'000'000'000},
                                   {"GiB", uint64_t{1} << 30},
                                   {"GB", 1'000'000'000},
                                   {"MiB", uint64_t{1} << 20},
                                   {"MB", 1'000'000},
                                   {"KiB", uint64_t{1} << 10},
                                   {"KB", 1'000},
                                   {"B", 1}};

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<bool> ParseFlag(std::string_view text) {
  for (const std::string_view word : {"true", "yes", "on", "1"}) {
    if (EqualsIgnoreCase(text, word)) return true;
  }
  for (const std::string_view word : {"false", "no", "off", "0"}) {
    if (EqualsIgnoreCase(text, word)) return false;
  }
  return std::nullopt;
}

std::string FormatDuration(Duration duration) {
  if (duration == Duration::zero()) return "0s";
  for (const TimeUnit& unit : kTimeUnits) {
    if (duration % unit.length == Duration::zero()) {
      return fmt::format("{}{}", duration / unit.length, unit.name);
    }
  }
  CHECK(false);  // nanoseconds divide every duration
}

std::string FormatBytes(uint64_t bytes) {
  for (const SizeUnit& unit : kSizeUnits) {
    if (unit.bytes > 1 && bytes >= unit.bytes && bytes % unit.bytes == 0) {
      return fmt::format("{}{}", bytes / unit.bytes, unit.name);
    }
  }
  return fmt::to_string(bytes);
}

std::string FormatBound(const Option& option, double bound) {
  switch (option.type) {
    case OptionType::kDuration:
      return FormatDuration(Duration(std::llround(bound * 1e9)));
    case OptionType::kBytes:
      return FormatBytes(static_cast<uint64_t>(bound));
    default:
      // Whole bounds without an exponent or a ".0".
      return bound == std::floor(bound) ? fmt::format("{:.0f}", bound) : fmt::to_string(bound);
  }
}

std::unexpected<Error> OutOfRange(const Option& option) {
  const auto [min, max] = option.range;
  if (std::isinf(max)) return Fail(Blame::kCaller, "must be {} or more", FormatBound(option, min));
  return Fail(Blame::kCaller, "must be between {} and {}", FormatBound(option, min),
              FormatBound(option, max));
}

bool Allows(const Option& option, double amount) {
  return amount >= option.range.min && amount <= option.range.max;
}

// The bounds are checked as written in the table: durations in seconds, sizes in bytes.
template <class T>
Result<OptionValue> Bounded(const Option& option, std::optional<T> value, double amount,
                            std::string_view wanted) {
  if (!value) return Fail(Blame::kCaller, "must be {}", wanted);
  if (!Allows(option, amount)) return OutOfRange(option);
  return OptionValue(*value);
}

Result<OptionValue> ParseInteger(const Option& option, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return OutOfRange(option);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return Bounded(option, whole ? std::optional(value) : std::nullopt, static_cast<double>(value),
                 "a whole number");
}

Result<OptionValue> ParseChoice(const Option& option, std::string_view text) {
  for (const std::string_view choice : option.choices) {
    if (EqualsIgnoreCase(choice, text)) return OptionValue(std::string(choice));
  }
  const auto nearest = Nearest(text, option.choices);
  return Fail(Blame::kCaller, "is not one of {}{}", fmt::join(option.choices, ", "),
              nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

// An empty key would mean no key: `--admin-key="$UNSET"` must not disable authentication.
Result<OptionValue> ParseSecret(std::string_view text) {
  if (text.empty()) return Fail(Blame::kCaller, "is empty; leave it out if no key is wanted");
  return OptionValue(std::string(text));
}

Result<OptionValue> ParseList(const Option& option, std::string_view text) {
  const auto words = option.urls
                         ? SplitUrls(text)
                         : SplitAny(text, option.type == OptionType::kFiles ? "\n" : ", \t\r\n");
  if (words.empty() && option.secret()) return ParseSecret("");
  return OptionValue(std::vector<std::string>(words.begin(), words.end()));
}

}  // namespace

std::optional<Duration> ParseDuration(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = ParseNumber(text.substr(0, digits));
  if (!number) return std::nullopt;
  const std::string_view unit = digits == text.size() ? "s" : text.substr(digits);
  for (const TimeUnit& known : kTimeUnits) {
    if (known.name != unit) continue;
    const double length = *number * static_cast<double>(known.length.count());
    if (length > 9e18) return std::nullopt;  // does not fit into nanoseconds
    return Duration(std::llround(length));
  }
  return std::nullopt;
}

std::optional<uint64_t> ParseBytes(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = ParseDecimal(text.substr(0, digits));
  if (!number) return std::nullopt;
  const std::string_view unit = digits == text.size() ? "B" : text.substr(digits);
  for (const SizeUnit& known : kSizeUnits) {
    if (!EqualsIgnoreCase(known.name, unit)) continue;
    if (*number > std::numeric_limits<uint64_t>::max() / known.bytes) return std::nullopt;
    return *number * known.bytes;
  }
  return std::nullopt;
}

OptionValue DefaultValue(const Option& option) {
  // A key that is not set is no key, not an empty one.
  if (option.type == OptionType::kSecret) return std::string();
  if (option.type == OptionType::kSecretList) return std::vector<std::string>();
  auto value = ParseValue(option, option.fallback);
  CHECK(value.has_value());
  return *std::move(value);
}

Result<OptionValue> ParseValue(const Option& option, std::string_view text) {
  switch (option.type) {
    case OptionType::kFlag:
      return Bounded(option, ParseFlag(text), 0, "true or false");
    case OptionType::kInteger:
      return ParseInteger(option, text);
    case OptionType::kNumber: {
      const auto number = ParseNumber(text);
      return Bounded(option, number, number.value_or(0), "a number");
    }
    case OptionType::kDuration: {
      const auto duration = ParseDuration(text);
      return Bounded(option, duration, Seconds(duration.value_or(Duration())),
                     "a time such as 250ms, 5s, 2m or 1h");
    }
    case OptionType::kBytes: {
      const auto bytes = ParseBytes(text);
      return Bounded(option, bytes, static_cast<double>(bytes.value_or(0)),
                     "a size such as 1048576, 64MB or 64MiB");
    }
    case OptionType::kText:
      return OptionValue(std::string(text));
    case OptionType::kChoice:
      return ParseChoice(option, text);
    case OptionType::kSecret:
      return ParseSecret(text);
    case OptionType::kList:
    case OptionType::kFiles:
    case OptionType::kSecretList:
      return ParseList(option, text);
  }
  CHECK(false);
}

std::string FormatValue(const Option& option, const OptionValue& value) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    if (option.secret()) return list->empty() ? "(unset)" : "(set)";
    return fmt::format("{}", fmt::join(*list, " "));
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (option.secret()) return text->empty() ? "(unset)" : "(set)";
    return *text;
  }
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* duration = std::get_if<Duration>(&value)) return FormatDuration(*duration);
  return FormatBytes(std::get<uint64_t>(value));
}

std::string FormatRange(const Option& option) {
  switch (option.type) {
    case OptionType::kInteger:
    case OptionType::kNumber:
    case OptionType::kDuration:
    case OptionType::kBytes:
      if (std::isinf(option.range.max)) {
        return fmt::format("{} or more", FormatBound(option, option.range.min));
      }
      return fmt::format("{} to {}", FormatBound(option, option.range.min),
                         FormatBound(option, option.range.max));
    case OptionType::kChoice:
      return fmt::format("{}", fmt::join(option.choices, ", "));
    default:
      return "";
  }
}

}  // namespace fathom
