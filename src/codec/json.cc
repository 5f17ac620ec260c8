#include "codec/json.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "base/text.h"

namespace fathom {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

Json Build(element from);

Json BuildArray(const simdjson::dom::array& from) {
  Json::Array array;
  array.reserve(from.size());  // counted by the parser
  for (const element item : from) array.push_back(Build(item));
  return Json(std::move(array));
}

Json BuildObject(const simdjson::dom::object& from) {
  Json::Object object;
  object.reserve(from.size());
  for (const auto& [key, value] : from) object.emplace_back(key, Build(value));
  return Json(std::move(object));
}

// Recursion is bounded by the parser's own limit on depth. The parser has determined the type of
// the element, so reading it as that type cannot fail.
Json Build(element from) {
  switch (from.type()) {
    case element_type::ARRAY:
      return BuildArray(from.get_array().value_unsafe());
    case element_type::OBJECT:
      return BuildObject(from.get_object().value_unsafe());
    case element_type::INT64:
      return Json(from.get_int64().value_unsafe());
    case element_type::UINT64:
      return Json(from.get_uint64().value_unsafe());
    case element_type::DOUBLE:
      return Json(from.get_double().value_unsafe());
    case element_type::STRING:
      return Json(std::string(from.get_string().value_unsafe()));
    case element_type::BOOL:
      return Json(from.get_bool().value_unsafe());
    case element_type::NULL_VALUE:
      break;
  }
  return Json();
}

struct AsDouble {
  std::optional<double> operator()(int64_t v) const { return static_cast<double>(v); }
  std::optional<double> operator()(uint64_t v) const { return static_cast<double>(v); }
  std::optional<double> operator()(double v) const { return v; }
  std::optional<double> operator()(const auto&) const { return std::nullopt; }
};

struct AsUnsigned {
  std::optional<uint64_t> operator()(int64_t v) const {
    return v < 0 ? std::nullopt : std::optional(static_cast<uint64_t>(v));
  }
  std::optional<uint64_t> operator()(uint64_t v) const { return v; }
  std::optional<uint64_t> operator()(double v) const {
    const bool fits = v >= 0 && v < 0x1p64 && v == std::floor(v);
    return fits ? std::optional(static_cast<uint64_t>(v)) : std::nullopt;
  }
  std::optional<uint64_t> operator()(const auto&) const { return std::nullopt; }
};

struct Write {
  JsonWriter& out;

  void operator()(std::nullptr_t) const { out.Null(); }
  void operator()(bool v) const { out.Bool(v); }
  void operator()(int64_t v) const { out.Int(v); }
  void operator()(uint64_t v) const { out.Unsigned(v); }
  // A double must be read back as a double: 2.0 is not the integer 2.
  void operator()(double v) const {
    const bool whole = v == std::floor(v) && std::abs(v) < 0x1p63;
    if (!whole) return static_cast<void>(out.Number(v));
    out.Raw(fmt::format("{:.1f}", v));
  }
  void operator()(const std::string& v) const { out.String(v); }
  void operator()(const Json::BigInteger& v) const { out.Raw(v.digits); }
  void operator()(const Json::Array& v) const {
    out.BeginArray();
    for (const Json& item : v) std::visit(*this, item.value());
    out.EndArray();
  }
  void operator()(const Json::Object& v) const {
    out.BeginObject();
    for (const auto& [key, item] : v) {
      out.Key(key);
      std::visit(*this, item.value());
    }
    out.EndObject();
  }
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The end of the string that begins at `at`.
size_t EndOfString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

bool Fits(std::string_view digits, bool negative) {
  const auto value = ParseDecimal(digits);
  return value && (!negative || *value <= uint64_t{1} << 63);
}

// The same document with an exponent after integers beyond 64 bits, so that they are read as
// floating point.
std::string WithLargeIntegersAsDoubles(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    bool large = false;
    if (text[at] == '"') {
      end = EndOfString(text, at);
    } else if (IsDigit(text[at])) {
      while (end < text.size() && IsDigit(text[end])) ++end;
      const bool whole = end == text.size() || !std::string_view(".eE").contains(text[end]);
      large = whole && !Fits(text.substr(at, end - at), at > 0 && text[at - 1] == '-');
      // The digits after the point or the exponent belong to the same number.
      while (!whole && end < text.size() &&
             std::string_view("0123456789.eE+-").contains(text[end])) {
        ++end;
      }
    }
    out += text.substr(at, end - at);
    if (large) out += "e0";
    at = end;
  }
  return out;
}

}  // namespace

Result<Json> Json::Parse(std::string_view text) {
  // The parser would copy from the null pointer that an empty view may have.
  if (text.empty()) return Fail(Blame::kCaller, "invalid JSON: the text is empty");
  // To make a parser takes longer than to parse a short text. One is kept, with what it needs for
  // the longest text that it was used for: about thirteen times its size.
  constexpr size_t kLongestForKept = size_t{128} << 10;
  thread_local simdjson::dom::parser kept;
  simdjson::dom::parser fresh;
  simdjson::dom::parser& parser = text.size() <= kLongestForKept ? kept : fresh;
  element root;
  const simdjson::error_code error = parser.parse(text.data(), text.size()).get(root);
  if (error) return Fail(Blame::kCaller, "invalid JSON: {}", simdjson::error_message(error));
  return Build(root);
}

Result<Json> Json::ParseWithLargeNumbers(std::string_view text) {
  return Parse(WithLargeIntegersAsDoubles(text));
}

std::optional<double> Json::number() const { return std::visit(AsDouble{}, value_); }

std::optional<uint64_t> Json::unsigned_integer() const { return std::visit(AsUnsigned{}, value_); }

const Json* Json::Find(std::string_view key) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  // If a key is repeated, the last one counts, as in the engines.
  const auto backwards = std::views::reverse(*members);
  const auto found = std::ranges::find(backwards, key, &Object::value_type::first);
  return found == backwards.end() ? nullptr : &found->second;
}

void Json::WriteTo(std::string& out) const {
  JsonWriter writer;
  std::visit(Write{writer}, value_);
  out += writer.text();
}

void JsonWriter::Comma() {
  if (need_comma_) out_ += ',';
  need_comma_ = true;
}

JsonWriter& JsonWriter::BeginObject() {
  Comma();
  out_ += '{';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::EndObject() {
  out_ += '}';
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::BeginArray() {
  Comma();
  out_ += '[';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::EndArray() {
  out_ += ']';
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Comma();
  AppendJsonString(out_, key);
  out_ += ':';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) {
  Comma();
  AppendJsonString(out_, value);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Comma();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Unsigned(uint64_t value) {
  Comma();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Number(double value) {
  if (!std::isfinite(value)) return Null();
  Comma();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) { return Raw(value ? "true" : "false"); }

JsonWriter& JsonWriter::Null() { return Raw("null"); }

JsonWriter& JsonWriter::Raw(std::string_view json) {
  Comma();
  out_ += json;
  return *this;
}

}  // namespace fathom
