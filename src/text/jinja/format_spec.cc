#include "text/jinja/format_spec.h"

#include <fmt/format.h>

#include <cmath>

#include "text/jinja/python_text.h"
#include "text/jinja/text_position.h"

namespace fathom {
namespace {

struct NumberText {
  bool negative;
  std::string prefix;  // 0x
  std::string digits;
};

std::string Grouped(std::string digits) {
  const size_t point = std::min(digits.find_first_of(".e"), digits.size());
  for (size_t at = point; at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

Result<NumberText> IntegerText(__int128 value, const FormatSpec& spec) {
  NumberText text{value < 0, "", ""};
  const auto magnitude = static_cast<unsigned __int128>(value < 0 ? -value : value);
  switch (spec.type) {
    case 0:
    case 'd':
    case 'i':
    case 'u':
      text.digits = fmt::format("{}", magnitude);
      break;
    case 'x':
      text = {text.negative, spec.alternate ? "0x" : "", fmt::format("{:x}", magnitude)};
      break;
    case 'X':
      text = {text.negative, spec.alternate ? "0X" : "", fmt::format("{:X}", magnitude)};
      break;
    case 'o':
      text = {text.negative, spec.alternate ? "0o" : "", fmt::format("{:o}", magnitude)};
      break;
    case 'b':
      text = {text.negative, spec.alternate ? "0b" : "", fmt::format("{:b}", magnitude)};
      break;
    default:
      return Fail(Blame::kCaller, "format '{}' is not for integers", spec.type);
  }
  return text;
}

Result<NumberText> RealText(double value, const FormatSpec& spec) {
  const double magnitude = std::abs(value);
  const auto precision = static_cast<int>(spec.precision.value_or(6));
  NumberText text{std::signbit(value) && !std::isnan(value), "", ""};
  switch (std::isfinite(value) ? spec.type : 'i') {
    case 'i':
      text.digits = std::isnan(value) ? "nan" : "inf";
      break;
    case 0:
      if (spec.precision) return Fail(Blame::kCaller, "a precision without a type");
      text.digits = FloatText(magnitude);
      break;
    case 'f':
    case 'F':
      text.digits = fmt::format("{:.{}f}", magnitude, precision);
      break;
    case 'e':
      text.digits = fmt::format("{:.{}e}", magnitude, precision);
      break;
    case 'E':
      text.digits = fmt::format("{:.{}E}", magnitude, precision);
      break;
    case 'g':
      text.digits = fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
      break;
    case '%':
      text.digits = fmt::format("{:.{}f}%", magnitude * 100, precision);
      break;
    default:
      return Fail(Blame::kCaller, "format '{}' is not for floats", spec.type);
  }
  return text;
}

Result<NumberText> TextOf(const TemplateValue& value, const FormatSpec& spec) {
  constexpr std::string_view kFloatTypes = "fFeEg%";
  const bool as_float = spec.type != 0 && kFloatTypes.find(spec.type) != std::string_view::npos;
  __int128 integer = 0;
  if (const double* real = value.real()) {
    return RealText(*real, spec);
  } else if (const int64_t* number = value.integer()) {
    integer = *number;
  } else if (value.large_integer() != nullptr) {
    return Fail(Blame::kCaller, "a number that is too large");
  } else if (const bool* boolean = value.boolean()) {
    integer = *boolean ? 1 : 0;
  } else {
    return Fail(Blame::kCaller, "{} is not a number", TypeName(value));
  }
  return as_float ? RealText(static_cast<double>(integer), spec) : IntegerText(integer, spec);
}

}  // namespace

bool IsTooWide(size_t width) { return width > 1000; }

Result<> AppendNumber(BoundedText& out, const TemplateValue& value, const FormatSpec& spec) {
  TRY(NumberText text, TextOf(value, spec));
  if (spec.grouped) text.digits = Grouped(std::move(text.digits));
  const std::string sign = text.negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  FormatSpec field = spec;
  field.precision.reset();
  const size_t size = sign.size() + text.prefix.size() + text.digits.size();
  if (spec.align == '=' && size < spec.width) {
    out.Add(sign + text.prefix);
    for (size_t i = size; i < spec.width; ++i) out.Add(spec.fill);
    out.Add(text.digits);
    return {};
  }
  if (field.align == 0) field.align = '>';
  return AppendField(out, sign + text.prefix + text.digits, field);
}

Result<> AppendField(BoundedText& out, std::string_view text, const FormatSpec& spec) {
  if (spec.precision) text = text.substr(0, OffsetOf(text, *spec.precision));
  const size_t length = spec.width == 0 ? 0 : CountCodePoints(text);
  const size_t missing = spec.width > length ? spec.width - length : 0;
  const size_t before = spec.align == '>' || spec.align == '=' ? missing
                        : spec.align == '^'                    ? missing / 2
                                                               : 0;
  for (size_t i = 0; i < before; ++i) out.Add(spec.fill);
  out.Add(text);
  for (size_t i = before; i < missing; ++i) out.Add(spec.fill);
  return {};
}

}  // namespace fathom
