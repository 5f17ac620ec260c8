#include "lab/mock/python_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace fathom {
namespace {

constexpr size_t kDeepest = 900;  // about where Python gives up, too

// Walks a document in Python's order, until the first thing that it does not accept.
class PythonScan {
 public:
  explicit PythonScan(std::string_view in) : in_(in) {}

  PythonJsonError Explain() {
    SkipSpace();
    if (Value(0)) {
      SkipSpace();
      if (at_ < in_.size()) Say("Extra data", at_);
    }
    return {problem_, position_};
  }

 private:
  bool Say(std::string_view problem, size_t at) {
    problem_ = problem;
    const auto before = in_.substr(0, std::min(at, in_.size()));
    position_ = static_cast<size_t>(
        std::ranges::count_if(before, [](char c) { return (c & 0xC0) != 0x80; }));
    return false;
  }

  void SkipSpace() { at_ = std::min(in_.find_first_not_of(" \t\n\r", at_), in_.size()); }
  char Peek() const { return at_ < in_.size() ? in_[at_] : '\0'; }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    SkipSpace();
    return true;
  }

  bool Value(size_t depth) {
    if (depth > kDeepest) return Say("Expecting value", at_);
    if (Peek() == '"') return Text();
    if (Peek() == '{') return Object(depth);
    if (Peek() == '[') return List(depth);
    return Word() || Number() || Say("Expecting value", at_);
  }

  bool Word() {
    static constexpr std::array<std::string_view, 6> kWords = {"null", "true",     "false",
                                                               "NaN",  "Infinity", "-Infinity"};
    for (const std::string_view word : kWords) {
      if (!in_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return true;
    }
    return false;
  }

  // Up to the end of the number; what follows is read by the caller.
  bool Number() {
    size_t end = at_ + (Peek() == '-' ? 1 : 0);
    const auto digits = [&](size_t from) {
      return std::min(in_.find_first_not_of("0123456789", from), in_.size());
    };
    if (end >= in_.size() || in_[end] < '0' || in_[end] > '9') return false;
    end = in_[end] == '0' ? end + 1 : digits(end);
    if (end < in_.size() && in_[end] == '.' && digits(end + 1) > end + 1) end = digits(end + 1);
    if (end < in_.size() && (in_[end] == 'e' || in_[end] == 'E')) {
      const size_t sign = end + 1 < in_.size() && (in_[end + 1] == '+' || in_[end + 1] == '-');
      if (digits(end + 1 + sign) > end + 1 + sign) end = digits(end + 1 + sign);
    }
    at_ = end;
    return true;
  }

  bool Text() {
    const size_t begin = at_++;
    for (; at_ < in_.size(); ++at_) {
      const char c = in_[at_];
      if (c == '"') return ++at_, true;
      if (static_cast<unsigned char>(c) < 0x20) return Say("Invalid control character at", at_);
      if (c == '\\' && !Escape()) return problem_.empty() ? Unterminated(begin) : false;
    }
    return Unterminated(begin);
  }
  bool Unterminated(size_t begin) { return Say("Unterminated string starting at", begin); }

  bool Escape() {
    const size_t backslash = at_++;
    if (at_ >= in_.size()) return false;
    if (in_[at_] != 'u') {
      return std::string_view("\"\\/bfnrt").contains(in_[at_]) ||
             Say("Invalid \\escape", backslash);
    }
    const std::string_view code = in_.substr(at_ + 1, 4);
    if (code.size() < 4 || code.find_first_not_of("0123456789abcdefABCDEF") != code.npos) {
      return Say("Invalid \\uXXXX escape", at_);
    }
    at_ += 4;
    return true;
  }

  bool List(size_t depth) {
    Take('[');
    if (Peek() == ']') return ++at_, true;
    for (;;) {
      if (!Value(depth + 1)) return false;
      SkipSpace();
      if (Peek() == ']') return ++at_, true;
      if (!Take(',')) return Say("Expecting ',' delimiter", at_);
    }
  }

  bool Object(size_t depth) {
    Take('{');
    if (Peek() == '}') return ++at_, true;
    for (;;) {
      if (Peek() != '"') return Say("Expecting property name enclosed in double quotes", at_);
      if (!Text()) return false;
      SkipSpace();
      if (!Take(':')) return Say("Expecting ':' delimiter", at_);
      if (!Value(depth + 1)) return false;
      SkipSpace();
      if (Peek() == '}') return ++at_, true;
      if (!Take(',')) return Say("Expecting ',' delimiter", at_);
    }
  }

  const std::string_view in_;
  size_t at_ = 0;
  std::string problem_;
  size_t position_ = 0;
};

}  // namespace

std::string PythonText(std::string_view text) {
  const char quote = text.contains('\'') && !text.contains('"') ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      out.append(1, '\\').append(1, c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out += quote;
}

std::string PythonFloat(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

PythonJsonError ExplainJson(std::string_view document) { return PythonScan(document).Explain(); }

}  // namespace fathom
