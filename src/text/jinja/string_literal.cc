#include "text/jinja/string_literal.h"

#include <charconv>
#include <cstdint>

#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// The code point that `digits` digits of that base say; a larger one than there is, if they do not.
uint32_t ReadNumber(std::string_view text, size_t digits, int base) {
  constexpr uint32_t kNone = kMaxCodePoint + 1;
  if (text.size() < digits) return kNone;
  uint32_t value = 0;
  const char* end = text.data() + digits;
  const auto [read, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && read == end ? value : kNone;
}

// The escapes that are one letter.
const char* Simple(char letter) {
  switch (letter) {
    case '\n':
      return "";
    case '\\':
      return "\\";
    case '\'':
      return "'";
    case '"':
      return "\"";
    case 'a':
      return "\a";
    case 'b':
      return "\b";
    case 'f':
      return "\f";
    case 'n':
      return "\n";
    case 'r':
      return "\r";
    case 't':
      return "\t";
    case 'v':
      return "\v";
    default:
      return nullptr;
  }
}

size_t HexDigits(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

// Reads what follows a backslash; returns how many bytes that was.
Result<size_t> Escape(std::string_view rest, std::string& out) {
  if (const char* simple = Simple(rest.front())) {
    out += simple;
    return 1;
  }
  if (IsOctal(rest.front())) {
    size_t digits = 1;
    while (digits < 3 && digits < rest.size() && IsOctal(rest[digits])) ++digits;
    AppendCodePoint(out, ReadNumber(rest, digits, 8));
    return digits;
  }
  if (rest.front() == 'N') return Fail(Blame::kCaller, "characters by name are not supported");
  const size_t digits = HexDigits(rest.front());
  if (digits == 0) {
    out += '\\';
    return 0;
  }
  const uint32_t value = ReadNumber(rest.substr(1), digits, 16);
  if (value > kMaxCodePoint || (value >= 0xd800 && value <= 0xdfff)) {
    return Fail(Blame::kCaller, "an escape that is not a character");
  }
  AppendCodePoint(out, value);
  return digits + 1;
}

}  // namespace

Result<std::string> UnescapeString(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t plain = text.find('\\');
    out += text.substr(0, plain);
    if (plain == std::string_view::npos) break;
    text.remove_prefix(plain + 1);
    if (text.empty()) return Fail(Blame::kCaller, "a backslash at the end");
    TRY(const size_t used, Escape(text, out));
    text.remove_prefix(used);
  }
  return out;
}

}  // namespace fathom
