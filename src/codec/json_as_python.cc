#include "codec/json_as_python.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "codec/json_scan.h"

namespace fathom {
namespace {

using Fault = PythonJsonFault;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsDecimal(char c) { return c >= '0' && c <= '9'; }

bool IsHexadecimal(char c) {
  return IsDecimal(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// How many bytes the escape at the beginning takes; 0: it is none.
size_t EscapeLength(std::string_view text) {
  if (text.size() < 2 || !std::string_view("\"\\/bfnrtu").contains(text[1])) return 0;
  if (text[1] != 'u') return 2;
  if (text.size() < 6) return 0;
  for (const char c : text.substr(2, 4)) {
    if (!IsHexadecimal(c)) return 0;
  }
  return 6;
}

// Recursive, as deep as kMostPythonDepth.
class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : rest_(text) {}

  std::expected<Json, Fault> Read() {
    std::optional<Json> value = ReadValue(0);
    if (value) SkipSpace();
    if (value && !rest_.empty()) value = Refuse(Fault::kNotJson);
    if (!value) return std::unexpected(fault_);
    return *std::move(value);
  }

 private:
  std::nullopt_t Refuse(Fault fault) {
    fault_ = fault;
    return std::nullopt;
  }

  void SkipSpace() {
    const size_t begin = rest_.find_first_not_of(" \t\n\r");
    rest_.remove_prefix(begin == std::string_view::npos ? rest_.size() : begin);
  }

  bool Skip(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::optional<Json> ReadValue(size_t depth) {
    SkipSpace();
    if (rest_.empty()) return Refuse(Fault::kNotJson);
    if (depth > kMostPythonDepth) return Refuse(Fault::kNotSupported);
    if (rest_.front() == '"') return ReadText();
    if (Skip("[")) return ReadList(depth);
    if (Skip("{")) return ReadObject(depth);
    return ReadWord();
  }

  std::optional<Json> ReadWord() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (Skip("null")) return Json();
    if (Skip("true")) return Json(true);
    if (Skip("false")) return Json(false);
    if (Skip("NaN")) return Json(std::numeric_limits<double>::quiet_NaN());
    if (Skip("Infinity")) return Json(kInfinity);
    if (Skip("-Infinity")) return Json(-kInfinity);
    return ReadNumber();
  }

  // How many digits there are from here on.
  size_t Digits(size_t at) const {
    size_t end = at;
    while (end < rest_.size() && IsDecimal(rest_[end])) ++end;
    return end - at;
  }

  std::optional<Json> ReadNumber() {
    const size_t sign = rest_.starts_with('-') ? 1 : 0;
    size_t end = sign + Digits(sign);
    if (end == sign) return Refuse(Fault::kNotJson);
    if (rest_[sign] == '0') end = sign + 1;  // Python reads no further, and fails at what follows
    const size_t whole = end;
    if (end < rest_.size() && rest_[end] == '.' && Digits(end + 1) > 0) end += 1 + Digits(end + 1);
    if (end < rest_.size() && (rest_[end] == 'e' || rest_[end] == 'E')) {
      const bool has_sign =
          end + 1 < rest_.size() && std::string_view("+-").contains(rest_[end + 1]);
      const size_t digits = end + (has_sign ? 2 : 1);
      if (Digits(digits) > 0) end = digits + Digits(digits);
    }
    const std::string number(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return end == whole ? Integer(number) : Json(std::strtod(number.c_str(), nullptr));
  }

  std::optional<Json> Integer(const std::string& number) {
    if (number.size() > kMostPythonDigits) return Refuse(Fault::kNotSupported);
    const char* const end = number.data() + number.size();
    int64_t small = 0;
    if (std::from_chars(number.data(), end, small).ec == std::errc()) return Json(small);
    uint64_t large = 0;
    const bool positive = number.front() != '-';
    if (positive && std::from_chars(number.data(), end, large).ec == std::errc())
      return Json(large);
    return Json(Json::BigInteger{number});
  }

  std::optional<std::string> ReadString() {
    if (rest_.empty() || rest_.front() != '"') return Refuse(Fault::kNotJson);
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') {
      const size_t length = rest_[end] == '\\' ? EscapeLength(rest_.substr(end)) : 1;
      if (length == 0 || static_cast<uint8_t>(rest_[end]) < 0x20) return Refuse(Fault::kNotJson);
      end += length;
    }
    if (end >= rest_.size()) return Refuse(Fault::kNotJson);
    std::optional<std::string> text = JsonText(rest_.substr(0, end + 1));
    if (!text) return Refuse(Fault::kNotSupported);
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::optional<Json> ReadText() {
    std::optional<std::string> text = ReadString();
    if (!text) return std::nullopt;
    return Json(*std::move(text));
  }

  std::optional<Json> ReadList(size_t depth) {
    Json::Array items;
    SkipSpace();
    if (Skip("]")) return Json(std::move(items));
    for (;;) {
      std::optional<Json> item = ReadValue(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(*std::move(item));
      SkipSpace();
      if (Skip("]")) return Json(std::move(items));
      if (!Skip(",")) return Refuse(Fault::kNotJson);
    }
  }

  std::optional<Json> ReadObject(size_t depth) {
    Json::Object members;
    SkipSpace();
    if (Skip("}")) return Json(std::move(members));
    for (;;) {
      SkipSpace();
      std::optional<std::string> key = ReadString();
      if (!key) return std::nullopt;
      SkipSpace();
      if (!Skip(":")) return Refuse(Fault::kNotJson);
      std::optional<Json> value = ReadValue(depth + 1);
      if (!value) return std::nullopt;
      members.emplace_back(*std::move(key), *std::move(value));
      SkipSpace();
      if (Skip("}")) return Json(std::move(members));
      if (!Skip(",")) return Refuse(Fault::kNotJson);
    }
  }

  std::string_view rest_;
  Fault fault_ = Fault::kNotJson;
};

}  // namespace

std::expected<Json, PythonJsonFault> JsonAsPython(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) return std::unexpected(Fault::kNotJson);
  // The usual document, many times faster.
  auto usual = Json::Parse(text);
  if (usual) return *std::move(usual);
  return PythonReader(text).Read();
}

}  // namespace fathom
