#include "text/jinja/python_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "text/jinja/object.h"
#include "text/jinja/syntax.h"
#include "text/unicode/letter_case.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

using Kind = TemplateValue::Kind;

// As scientific notation says it: the digits, and where the point is.
std::string PlaceDigits(std::string_view digits, int exponent) {
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    const std::string_view point = count > 1 ? "." : "";
    return fmt::format("{}{}{}e{}{:02}", digits.substr(0, 1), point, digits.substr(1),
                       exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return fmt::format("0.{:0>{}}{}", "", -exponent - 1, digits);
  if (exponent + 1 >= count) return fmt::format("{}{:0>{}}.0", digits, "", exponent + 1 - count);
  const auto whole = static_cast<size_t>(exponent + 1);
  return fmt::format("{}.{}", digits.substr(0, whole), digits.substr(whole));
}

void AppendEscaped(BoundedText& out, std::string_view bytes, CodePoint point, char quote) {
  const uint32_t c = point.value;
  if (c == static_cast<uint32_t>(quote) || c == '\\') {
    const char escaped[] = {'\\', static_cast<char>(c)};
    return out.Add({escaped, 2});
  }
  if (c == '\n') return out.Add("\\n");
  if (c == '\r') return out.Add("\\r");
  if (c == '\t') return out.Add("\\t");
  if (IsPrintable(c)) return out.Add(bytes.substr(0, point.length));
  if (c <= 0xff) return out.Add(fmt::format("\\x{:02x}", c));
  if (c <= 0xffff) return out.Add(fmt::format("\\u{:04x}", c));
  if (c <= kMaxCodePoint) return out.Add(fmt::format("\\U{:08x}", c));
  out.Add(fmt::format("\\udc{:02x}", static_cast<uint8_t>(bytes.front())));
}

void AppendQuoted(BoundedText& out, std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos;
  const char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.Add(1, quote);
  while (!text.empty() && out.open()) {
    const CodePoint point = FirstCodePoint(text);
    AppendEscaped(out, text, point, quote);
    text.remove_prefix(point.length);
  }
  out.Add(1, quote);
}

struct Brackets {
  std::string_view open;
  std::string_view close;
};

Brackets BracketsOf(const TemplateSequence& sequence) {
  switch (sequence.kind) {
    case SequenceKind::kTuple:
    case SequenceKind::kGroup:
      return {"(", sequence.items.size() == 1 ? ",)" : ")"};
    case SequenceKind::kKeys:
      return {"dict_keys([", "])"};
    case SequenceKind::kValues:
      return {"dict_values([", "])"};
    case SequenceKind::kItems:
      return {"dict_items([", "])"};
    default:
      return {"[", "]"};
  }
}

Result<> AppendSequence(BoundedText& out, const TemplateSequence& sequence) {
  if (sequence.kind == SequenceKind::kRange) return Fail(Blame::kCaller, "a range is not printed");
  const Brackets brackets = BracketsOf(sequence);
  out.Add(brackets.open);
  bool first = true;
  for (const TemplateValue& item : sequence.items) {
    if (!first) out.Add(", ");
    first = false;
    TRY_VOID(AppendRepr(out, item));
    if (!out.open()) break;
  }
  out.Add(brackets.close);
  return {};
}

Result<> AppendDict(BoundedText& out, const TemplateDict& dict) {
  out.Add("{");
  bool first = true;
  for (const auto& [key, value] : dict) {
    if (!first) out.Add(", ");
    first = false;
    TRY_VOID(AppendRepr(out, KeyValue(key)));
    out.Add(": ");
    TRY_VOID(AppendRepr(out, value));
    if (!out.open()) break;
  }
  out.Add("}");
  return {};
}

}  // namespace

std::string_view TypeName(const TemplateValue& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "undefined";
    case Kind::kNone:
      return "None";
    case Kind::kBoolean:
      return "bool";
    case Kind::kInteger:
    case Kind::kLargeInteger:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kText:
      return "str";
    case Kind::kSequence:
      return value.sequence()->kind == SequenceKind::kList ? "list" : "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kCallable:
      return "function";
    case Kind::kLoop:
      return "loop";
    case Kind::kIterator:
      return "generator";
  }
  return "";
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  std::string_view text(buffer, end.ptr);
  const std::string_view sign = text.starts_with('-') ? "-" : "";
  text.remove_prefix(sign.size());
  const size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  std::erase(digits, '.');
  int exponent = 0;
  const size_t number = text[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(text.data() + number, text.data() + text.size(), exponent);
  return fmt::format("{}{}", sign, PlaceDigits(digits, exponent));
}

Result<> AppendRepr(BoundedText& out, const TemplateValue& value) {
  if (value.is_undefined()) {
    out.Add("Undefined");
    return {};
  }
  if (const std::string* text = value.text()) {
    if (value.is_markup()) out.Add("Markup(");
    AppendQuoted(out, *text);
    if (value.is_markup()) out.Add(")");
    return {};
  }
  return AppendStr(out, value);
}

Result<> AppendStr(BoundedText& out, const TemplateValue& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kNone:
      out.Add("None");
      break;
    case Kind::kBoolean:
      out.Add(*value.boolean() ? "True" : "False");
      break;
    case Kind::kInteger:
      out.Add(fmt::format_int(*value.integer()).c_str());
      break;
    case Kind::kLargeInteger:
      out.Add(value.large_integer()->digits);
      break;
    case Kind::kFloat:
      out.Add(FloatText(*value.real()));
      break;
    case Kind::kText:
      out.Add(*value.text());
      break;
    case Kind::kSequence:
      return AppendSequence(out, *value.sequence());
    case Kind::kDict:
      return AppendDict(out, *value.dict());
    default:
      return Fail(Blame::kCaller, "a {} cannot be printed", TypeName(value));
  }
  return {};
}

Result<TemplateValue> Str(const TemplateValue& value, RenderBudget& budget) {
  if (value.is_text()) return value;
  BoundedText out(budget);
  TRY_VOID(AppendStr(out, value));
  return std::move(out).TakeValue();
}

}  // namespace fathom
