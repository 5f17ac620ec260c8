#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "text/jinja/filter.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_text.h"
#include "text/jinja/text_strip.h"

namespace fathom {
namespace {

std::optional<int64_t> IntegerOf(const TemplateValue& value) {
  if (const int64_t* integer = value.integer()) return *integer;
  if (const bool* boolean = value.boolean()) return *boolean ? 1 : 0;
  return std::nullopt;
}

// Without its sign and the underscores that Python allows between digits; nullopt: others.
std::optional<std::string> Digits(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() &&
                         std::isalnum(static_cast<uint8_t>(text[i - 1])) != 0 &&
                         std::isalnum(static_cast<uint8_t>(text[i + 1])) != 0;
    if (!between) return std::nullopt;
  }
  return out;
}

// "0x" before digits to the base of 16, and the like.
std::string_view WithoutBase(std::string_view text, int base) {
  const char letter = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : '\0';
  const bool named = text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == letter;
  return named ? text.substr(2) : text;
}

std::optional<int64_t> ReadInteger(std::string_view text, int base) {
  text = StripRight(StripLeft(text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  text = WithoutBase(text, base);
  const std::optional<std::string> digits = Digits(text);
  if (!digits || digits->empty() || digits->starts_with('-')) return std::nullopt;
  const std::string signed_digits = negative ? "-" + *digits : *digits;
  int64_t value = 0;
  const char* end = signed_digits.data() + signed_digits.size();
  const auto [read, error] = std::from_chars(signed_digits.data(), end, value, base);
  return error == std::errc() && read == end ? std::optional(value) : std::nullopt;
}

std::optional<double> ReadFloat(std::string_view text) {
  text = StripRight(StripLeft(text));
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::optional<std::string> digits = Digits(text);
  if (!digits || digits->empty() || digits->starts_with('+')) return std::nullopt;
  double value = 0;
  const char* end = digits->data() + digits->size();
  const auto [read, error] = std::from_chars(digits->data(), end, value);
  if (read != end || error == std::errc::invalid_argument) return std::nullopt;
  // Out of range: Python rounds to zero or infinity, as strtod does.
  return error == std::errc() ? value : std::strtod(digits->c_str(), nullptr);
}

Result<TemplateValue> Truncated(double value, const TemplateValue& fallback) {
  if (!std::isfinite(value)) return fallback;
  if (std::abs(value) >= 0x1p63) return Fail(Blame::kCaller, "a number that is too large");
  return static_cast<int64_t>(value);
}

Result<TemplateValue> Int(const TemplateValue& input, const Arguments& arguments, RenderBudget&) {
  TRY(const auto bound, Bind(arguments, {"default", "base"}, 0));
  const TemplateValue fallback = bound[0] == nullptr ? TemplateValue(0) : *bound[0];
  TRY(const int64_t base, IntegerOr(bound[1], 10));
  if (base < 2 || base > 36) return Fail(Blame::kCaller, "a base that is not supported");
  if (input.is_undefined()) return Fail(Blame::kCaller, "an undefined value is not a number");
  if (const std::optional<int64_t> integer = IntegerOf(input)) return *integer;
  if (input.large_integer() != nullptr) return input;
  if (const double* real = input.real()) return Truncated(*real, fallback);
  const std::string* text = input.text();
  if (text == nullptr) return fallback;
  if (const auto integer = ReadInteger(*text, static_cast<int>(base))) return *integer;
  const std::optional<double> real = ReadFloat(*text);
  return real ? Truncated(*real, fallback) : fallback;
}

Result<TemplateValue> Float(const TemplateValue& input, const Arguments& arguments, RenderBudget&) {
  TRY(const auto bound, Bind(arguments, {"default"}, 0));
  if (input.is_undefined()) return Fail(Blame::kCaller, "an undefined value is not a number");
  if (input.real() != nullptr) return input;
  if (const std::optional<int64_t> integer = IntegerOf(input)) return static_cast<double>(*integer);
  if (const LargeInteger* large = input.large_integer()) return AsDouble(*large);
  const std::optional<double> real = input.is_text() ? ReadFloat(*input.text()) : std::nullopt;
  if (real) return *real;
  return bound[0] == nullptr ? TemplateValue(0.0) : *bound[0];
}

Result<TemplateValue> Abs(const TemplateValue& input, const Arguments& arguments, RenderBudget&) {
  TRY_VOID(BindNone(arguments));
  if (const double* real = input.real()) return std::abs(*real);
  if (const LargeInteger* large = input.large_integer()) {
    return TemplateValue(
        LargeInteger{large->digits.substr(large->digits.starts_with('-') ? 1 : 0)});
  }
  const std::optional<int64_t> integer = IntegerOf(input);
  if (!integer) return Fail(Blame::kCaller, "{} is not a number", TypeName(input));
  return *integer < 0 ? Negative(*integer) : *integer;
}

// To so many decimals, halves to the even neighbour: what printing them does.
double RoundedTo(double value, int64_t decimals) {
  constexpr int64_t kMostDecimals = 323;
  if (!std::isfinite(value) || decimals > kMostDecimals) return value;
  if (decimals >= 0) {
    return std::strtod(fmt::format("{:.{}f}", value, decimals).c_str(), nullptr);
  }
  const double unit = std::pow(10.0, static_cast<double>(-decimals));
  return std::isfinite(unit) ? std::nearbyint(value / unit) * unit : 0.0 * value;
}

Result<TemplateValue> RoundedInteger(int64_t value, int64_t decimals) {
  if (decimals >= 0) return value;
  if (decimals < -18) return int64_t{0};
  int64_t unit = 1;
  for (int64_t i = 0; i < -decimals; ++i) unit *= 10;
  const int64_t rest = ((value % unit) + unit) % unit;
  const int64_t below = value - rest;
  const bool up = rest > unit - rest || (rest == unit - rest && (below / unit) % 2 != 0);
  int64_t result = below;
  if (up && __builtin_add_overflow(below, unit, &result)) {
    return Fail(Blame::kCaller, "a number that is too large");
  }
  return result;
}

Result<TemplateValue> Round(const TemplateValue& input, const Arguments& arguments, RenderBudget&) {
  TRY(const auto bound, Bind(arguments, {"precision", "method"}, 0));
  TRY(const int64_t decimals, IntegerOr(bound[0], 0));
  TRY(const std::string_view method, TextOr(bound[1], "common"));
  const std::optional<int64_t> integer = IntegerOf(input);
  if (!integer && input.real() == nullptr)
    return Fail(Blame::kCaller, "{} is not a number", TypeName(input));
  if (method == "common") {
    return integer ? RoundedInteger(*integer, decimals) : RoundedTo(*input.real(), decimals);
  }
  if (method != "ceil" && method != "floor")
    return Fail(Blame::kCaller, "an unknown rounding method");
  const double value = integer ? static_cast<double>(*integer) : *input.real();
  const double unit = std::pow(10.0, static_cast<double>(decimals));
  const double rounded = method == "ceil" ? std::ceil(value * unit) : std::floor(value * unit);
  if (!std::isfinite(rounded) || unit == 0)
    return Fail(Blame::kCaller, "a number that is too large");
  return rounded / unit;
}

constexpr Filter kNumberFilters[] = {
    {"abs", Abs},
    {"float", Float},
    {"int", Int},
    {"round", Round},
};

}  // namespace

std::span<const Filter> NumberFilters() { return kNumberFilters; }

}  // namespace fathom
