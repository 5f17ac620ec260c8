#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "text/jinja/string_literal.h"
#include "text/unicode/letter_case.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// Every line ends with \n, and the last newline of all is dropped.
std::string NormalizeLines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t at = 0; at < source.size(); ++at) {
    if (source[at] != '\r') {
      out += source[at];
      continue;
    }
    out += '\n';
    if (at + 1 < source.size() && source[at + 1] == '\n') ++at;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

// How many bytes of whitespace `text` begins with.
size_t LeadingSpace(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = FirstCodePoint(text.substr(at));
    if (!IsSpace(point.value)) break;
    at += point.length;
  }
  return at;
}

std::string_view WithoutTrailingSpace(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = FirstCodePoint(text.substr(at));
    at += point.length;
    if (!IsSpace(point.value)) end = at;
  }
  return text.substr(0, end);
}

bool IsDecimal(char c) { return c >= '0' && c <= '9'; }
bool IsNameByte(char c) {
  return IsDecimal(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Longest first.
constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  Result<std::vector<Token>> Run() {
    while (at_ < source_.size()) TRY_VOID(Text());
    Push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  enum class Tag : uint8_t { kStatement, kPrint, kComment };

  std::string_view Rest() const { return std::string_view(source_).substr(at_); }

  void Push(TokenKind kind, std::string_view text) {
    tokens_.emplace_back(kind, std::string(text), line_);
  }

  // Moves on, counting lines.
  void Skip(size_t bytes) {
    const std::string_view skipped = Rest().substr(0, bytes);
    line_ += static_cast<uint32_t>(std::ranges::count(skipped, '\n'));
    if (!skipped.empty()) line_starts_ = skipped.ends_with('\n');
    at_ += bytes;
  }

  void SkipSpace() { Skip(LeadingSpace(Rest())); }

  // Text up to a tag, and that tag.
  Result<> Text() {
    size_t begin = at_;
    std::optional<Tag> tag;
    for (; begin < source_.size() && !tag; ++begin) tag = TagAt(begin);
    if (!tag) {
      PushText(Rest());
      Skip(source_.size() - at_);
      return {};
    }
    --begin;
    const char sign = begin + 2 < source_.size() ? source_[begin + 2] : ' ';
    const std::string_view text = Rest().substr(0, begin - at_);
    PushText(Kept(text, *tag, sign));
    Skip(text.size());
    const size_t opening = sign == '-' || sign == '+' ? 3 : 2;
    if (*tag == Tag::kComment) return Comment(opening);
    if (*tag == Tag::kPrint) return Inside(opening, TokenKind::kPrintBegin, TokenKind::kPrintEnd);
    if (const size_t raw = RawBegin(opening); raw > 0) return Raw(raw);
    return Inside(opening, TokenKind::kStatementBegin, TokenKind::kStatementEnd);
  }

  std::optional<Tag> TagAt(size_t at) const {
    if (source_[at] != '{' || at + 1 >= source_.size()) return std::nullopt;
    switch (source_[at + 1]) {
      case '%':
        return Tag::kStatement;
      case '{':
        return Tag::kPrint;
      case '#':
        return Tag::kComment;
      default:
        return std::nullopt;
    }
  }

  // What is left of the text before a tag.
  std::string_view Kept(std::string_view text, Tag tag, char sign) const {
    if (sign == '-') return WithoutTrailingSpace(text);
    if (sign == '+' || tag == Tag::kPrint) return text;
    const size_t newline = text.rfind('\n');
    if (newline == std::string_view::npos && !line_starts_) return text;
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    return LeadingSpace(text.substr(line)) == text.size() - line ? text.substr(0, line) : text;
  }

  void PushText(std::string_view text) {
    if (!text.empty()) Push(TokenKind::kText, text);
  }

  // The end of a tag at the cursor, with its sign: its length, 0 if there is none.
  size_t ClosingAt(std::string_view closing, bool plus) const {
    const std::string_view rest = Rest();
    if (rest.starts_with(closing)) return closing.size();
    const bool sign = rest.starts_with('-') || (plus && rest.starts_with('+'));
    return sign && rest.substr(1).starts_with(closing) ? closing.size() + 1 : 0;
  }

  // Leaves a tag of that length, with the whitespace behind it that goes with it.
  void Close(size_t length, bool trims) {
    const char sign = source_[at_];
    const bool strips = sign == '-';
    const bool keeps = sign == '+';
    Skip(length);
    if (strips) {
      SkipSpace();
    } else if (trims && !keeps && Rest().starts_with('\n')) {
      Skip(1);
    }
  }

  Result<> Comment(size_t opening) {
    const uint32_t line = line_;
    Skip(opening);
    while (at_ < source_.size()) {
      if (const size_t closing = ClosingAt("#}", true); closing > 0) {
        Close(closing, true);
        return {};
      }
      Skip(1);
    }
    return Fail(Blame::kCaller, "line {}: a comment without end", line);
  }

  // The length of {% raw %} at the cursor; 0: it is another statement.
  size_t RawBegin(size_t opening) const {
    const std::string_view rest = Rest();
    size_t at = opening + LeadingSpace(rest.substr(opening));
    if (!rest.substr(at).starts_with("raw")) return 0;
    at += 3;
    at += LeadingSpace(rest.substr(at));
    if (rest.substr(at).starts_with("%}")) return at + 2;
    if (!rest.substr(at).starts_with("-%}")) return 0;
    at += 3;
    return at + LeadingSpace(rest.substr(at));
  }

  Result<> Raw(size_t opening) {
    const uint32_t line = line_;
    Skip(opening);
    for (size_t begin = at_; begin < source_.size(); ++begin) {
      if (TagAt(begin) != Tag::kStatement) continue;
      const char sign = begin + 2 < source_.size() ? source_[begin + 2] : ' ';
      const size_t words = begin + (sign == '-' || sign == '+' ? 3 : 2);
      const std::string_view after =
          std::string_view(source_).substr(std::min(words, source_.size()));
      const size_t space = LeadingSpace(after);
      if (!after.substr(space).starts_with("endraw")) continue;
      const size_t word_end = space + 6;
      const size_t closing_at = words + word_end + LeadingSpace(after.substr(word_end));
      const std::string_view text = Rest().substr(0, begin - at_);
      const std::string_view kept = Kept(text, Tag::kStatement, sign);
      const std::pair<size_t, uint32_t> here{at_, line_};
      at_ = closing_at;
      const size_t closing = ClosingAt("%}", true);
      std::tie(at_, line_) = here;
      if (closing == 0) continue;
      PushText(kept);
      Skip(closing_at - at_);
      Close(closing, true);
      return {};
    }
    return Fail(Blame::kCaller, "line {}: raw without endraw", line);
  }

  Result<> Inside(size_t opening, TokenKind begin, TokenKind end) {
    Push(begin, "");
    const uint32_t line = line_;
    Skip(opening);
    const bool prints = begin == TokenKind::kPrintBegin;
    std::string brackets;  // those that are still to be closed
    while (at_ < source_.size()) {
      const size_t closing = brackets.empty() ? ClosingAt(prints ? "}}" : "%}", !prints) : 0;
      if (closing > 0) {
        Push(end, "");
        Close(closing, !prints);
        return {};
      }
      TRY_VOID(Next(brackets));
    }
    return Fail(Blame::kCaller, "line {}: a tag without end", line);
  }

  Result<> Next(std::string& brackets) {
    const std::string_view rest = Rest();
    if (const size_t space = LeadingSpace(rest); space > 0) {
      Skip(space);
      return {};
    }
    if (IsDecimal(rest.front())) return Number();
    if (IsNameByte(rest.front())) return Name();
    if (rest.front() == '\'' || rest.front() == '"') return String();
    return Operator(brackets);
  }

  Result<> Name() {
    size_t length = 1;
    while (length < Rest().size() && IsNameByte(Rest()[length])) ++length;
    Push(TokenKind::kName, Rest().substr(0, length));
    Skip(length);
    return {};
  }

  // Digits with single underscores between them; 0: none.
  static size_t Digits(std::string_view text) {
    size_t length = 0;
    while (length < text.size()) {
      const bool joined = text[length] == '_' && length > 0 && length + 1 < text.size() &&
                          IsDecimal(text[length + 1]);
      if (!IsDecimal(text[length]) && !joined) break;
      ++length;
    }
    return length;
  }

  Result<> Number() {
    const std::string_view rest = Rest();
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    size_t length = Digits(rest);
    bool is_float = false;
    if (length < rest.size() && rest[length] == '.') {
      if (const size_t digits = Digits(rest.substr(length + 1)); digits > 0) {
        length += 1 + digits;
        is_float = true;
      }
    }
    if (length < rest.size() && (rest[length] == 'e' || rest[length] == 'E')) {
      const bool sign =
          length + 1 < rest.size() && (rest[length + 1] == '+' || rest[length + 1] == '-');
      const size_t digits_at = std::min(length + (sign ? 2 : 1), rest.size());
      if (const size_t digits = Digits(rest.substr(digits_at)); digits > 0) {
        length = digits_at + digits;
        is_float = true;
      }
    }
    if (is_float && !after_dot) return PushNumber(TokenKind::kFloat, length);
    length = Digits(rest);
    const bool leading_zero =
        rest.front() == '0' && rest.substr(0, length).find_first_not_of("0_") != rest.npos;
    const bool other_base =
        rest.front() == '0' && rest.size() > 1 && IsNameByte(rest[1]) && !IsDecimal(rest[1]);
    if (leading_zero || other_base) {
      return Fail(Blame::kCaller, "line {}: a number must be decimal and without a leading zero",
                  line_);
    }
    return PushNumber(TokenKind::kInteger, length);
  }

  Result<> PushNumber(TokenKind kind, size_t length) {
    std::string digits(Rest().substr(0, length));
    std::erase(digits, '_');
    Push(kind, digits);
    Skip(length);
    return {};
  }

  Result<> String() {
    const char quote = Rest().front();
    size_t end = 1;
    while (end < Rest().size() && Rest()[end] != quote) end += Rest()[end] == '\\' ? 2 : 1;
    if (end >= Rest().size()) return Fail(Blame::kCaller, "line {}: a string without end", line_);
    auto text = UnescapeString(Rest().substr(1, end - 1));
    if (!text) return Fail(Blame::kCaller, "line {}: {}", line_, text.error().what);
    Push(TokenKind::kString, *text);
    Skip(end + 1);
    return {};
  }

  Result<> Operator(std::string& brackets) {
    for (const std::string_view text : kOperators) {
      if (!Rest().starts_with(text)) continue;
      if (!Balance(brackets, text.front())) {
        return Fail(Blame::kCaller, "line {}: unexpected '{}'", line_, text);
      }
      Push(TokenKind::kOperator, text);
      Skip(text.size());
      return {};
    }
    return Fail(Blame::kCaller, "line {}: a character that is invalid in an expression", line_);
  }

  static bool Balance(std::string& brackets, char c) {
    constexpr std::string_view kOpening = "([{";
    constexpr std::string_view kClosing = ")]}";
    if (const size_t opening = kOpening.find(c); opening != std::string_view::npos) {
      brackets += kClosing[opening];
      return true;
    }
    if (kClosing.find(c) == std::string_view::npos) return true;
    if (brackets.empty() || brackets.back() != c) return false;
    brackets.pop_back();
    return true;
  }

  std::string source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starts_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view source) {
  return Lexer(NormalizeLines(source)).Run();
}

}  // namespace fathom
