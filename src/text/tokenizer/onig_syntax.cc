#include "text/tokenizer/onig_syntax.h"

#include <algorithm>
#include <array>

namespace fathom {
namespace {

// White_Space, which PCRE2's \s exceeds by U+180E.
constexpr std::string_view kSpaces =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpaces =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
// Alphabetic, M, Nd and Pc; PCRE2's \w has fewer.
constexpr std::string_view kWordParts =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
// Outside of a class Oniguruma takes these for letters too: two, three, one, and the quarters.
constexpr std::string_view kWordPartsByItself = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view kHexDigits = "0-9A-Fa-f";

constexpr std::array<std::string_view, 38> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
    "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
    "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cs", "Co", "Cn", "Any"};
constexpr std::array<std::string_view, 21> kScripts = {
    "Han",    "Hiragana", "Katakana",   "Hangul", "Latin",   "Greek",    "Cyrillic",
    "Arabic", "Hebrew",   "Devanagari", "Thai",   "Lao",     "Bengali",  "Tamil",
    "Telugu", "Kannada",  "Malayalam",  "Khmer",  "Myanmar", "Armenian", "Georgian"};

std::string WordParts() { return std::string(kWordParts).append(kWordPartsByItself); }

class Translator {
 public:
  explicit Translator(std::string_view in) : in_(in) {}

  Result<std::string> Run() {
    while (!in_.empty()) TRY_VOID(Next());
    return std::move(out_);
  }

 private:
  std::unexpected<Error> Refuse(std::string_view what) const {
    return Fail(Blame::kCaller, "not supported: {} in an expression", what);
  }

  bool Take(std::string_view text) {
    if (!in_.starts_with(text)) return false;
    in_.remove_prefix(text.size());
    return true;
  }

  void Copy(size_t length) {
    out_ += in_.substr(0, length);
    in_.remove_prefix(length);
  }

  Result<void> Next() {
    switch (in_[0]) {
      case '\\':
        return Escape(false);
      case '[':
        return Class();
      case '(':
        return Group();
      case '{':
        return Interval();
      default:
        Copy(1);
        return {};
    }
  }

  Result<void> Group() {
    if (!in_.starts_with("(?")) return Copy(1), Result<void>();
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (in_.starts_with(opening)) return Copy(opening.size()), Result<void>();
    }
    if (!in_.starts_with("(?i:"))
      return Refuse("a group of the kind " + std::string(in_.substr(0, 4)));
    // Without case "ss" is also one letter, and PCRE2 does not know that.
    const std::string_view body = in_.substr(4, in_.find(')') - 4);
    for (const std::string_view joined : {"ss", "st", "ff", "fi", "fl", "[", "\\", "("}) {
      if (body.find(joined) != body.npos) return Refuse("this use of (?i:)");
    }
    if (std::ranges::any_of(body, [](char c) { return static_cast<signed char>(c) < 0; })) {
      return Refuse("this use of (?i:)");
    }
    Copy(4);
    return {};
  }

  // {n,m}. A sign after it makes it possessive or lazy in one syntax and not in the other.
  Result<void> Interval() {
    const size_t end = in_.find('}');
    const std::string_view inside = in_.substr(1, end == in_.npos ? 0 : end - 1);
    const size_t digits = std::min(inside.find_first_not_of("0123456789"), inside.size());
    const bool plain = digits > 0 && (digits == inside.size() || inside[digits] == ',') &&
                       inside.find_first_not_of("0123456789,") == inside.npos &&
                       std::ranges::count(inside, ',') <= 1;
    if (!plain) return Refuse("this use of {");
    Copy(end + 1);
    if (in_.starts_with('+') || in_.starts_with('?')) return Refuse("a sign after {n,m}");
    return {};
  }

  Result<void> Class() {
    Copy(1);
    if (in_.starts_with('^')) Copy(1);
    if (in_.starts_with(']')) return Refuse("] at the beginning of a class");
    while (!in_.empty() && in_[0] != ']') {
      if (in_[0] == '[') return Refuse("a class in a class");
      if (in_.starts_with("&&")) return Refuse("&& in a class");
      if (in_[0] == '\\') {
        TRY_VOID(Escape(true));
      } else {
        Copy(1);
      }
    }
    if (in_.empty()) return Fail(Blame::kCaller, "an expression has a class without an end");
    Copy(1);
    return {};
  }

  void Set(std::string_view members, bool in_class) {
    if (in_class) {
      out_ += members;
    } else {
      out_.append("[").append(members).append("]");
    }
  }

  // The complement of a set, which cannot be said inside a class.
  Result<void> NotSet(std::string_view members, bool in_class) {
    if (in_class) return Refuse("a negated set in a class");
    out_.append("[^").append(members).append("]");
    return {};
  }

  Result<void> Escape(bool in_class) {
    if (in_.size() < 2) return Fail(Blame::kCaller, "an expression ends with a backslash");
    const char letter = in_[1];
    if (letter == 'p' || letter == 'P') return Property();
    if (letter == 'x' || letter == 'u') return Code();
    const auto byte = static_cast<uint8_t>(letter);
    const bool alphanumeric = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
    if (byte >= 0x80 || (letter >= '0' && letter <= '9')) return Refuse("this escape");
    if (!alphanumeric || letter == 'n' || letter == 'r' || letter == 't' || letter == 'f' ||
        letter == 'a' || letter == 'e') {
      Copy(2);
      return {};
    }
    in_.remove_prefix(2);
    return NamedSet(letter, in_class);
  }

  Result<void> NamedSet(char letter, bool in_class) {
    switch (letter) {
      case 's':
        return Set(kSpaces, in_class), Result<void>();
      case 'S':
        return Set(kNotSpaces, in_class), Result<void>();
      case 'd':
        return Set(R"(\p{Nd})", in_class), Result<void>();
      case 'D':
        return Set(R"(\P{Nd})", in_class), Result<void>();
      case 'w':
        return Set(in_class ? std::string(kWordParts) : WordParts(), in_class), Result<void>();
      case 'W':
        return NotSet(WordParts(), in_class);
      case 'h':
        return Set(kHexDigits, in_class), Result<void>();
      case 'H':
        return NotSet(kHexDigits, in_class);
      case 'v':
        return Set(R"(\x{b})", in_class), Result<void>();
      default:
        return Anchor(letter, in_class);
    }
  }

  Result<void> Anchor(char letter, bool in_class) {
    if (in_class || std::string_view("bBAzZ").find(letter) == std::string_view::npos) {
      return Refuse(fmt::format("\\{}", letter));
    }
    if (letter == 'b' || letter == 'B') {
      const bool at = letter == 'b';
      out_ += fmt::format("(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))", WordParts(),
                          at ? "!" : "=", at ? "=" : "!");
    } else {
      out_.append("\\").append(1, letter);
    }
    return {};
  }

  Result<void> Property() {
    const bool negated = in_[1] == 'P';
    in_.remove_prefix(2);
    if (!Take("{")) return Refuse("\\p without braces");
    const bool turned = Take("^");
    const size_t end = in_.find('}');
    if (end == in_.npos) return Fail(Blame::kCaller, "an expression has \\p{{ without an end");
    const std::string name(in_.substr(0, end));
    in_.remove_prefix(end + 1);
    out_ += negated != turned ? "\\P{" : "\\p{";
    if (std::ranges::find(kCategories, name) != kCategories.end()) {
      out_ += name;
    } else if (std::ranges::find(kScripts, name) != kScripts.end()) {
      out_ += "sc:" + name;  // without it PCRE2 looks at script extensions
    } else {
      return Refuse("\\p{" + name + "}");
    }
    out_ += '}';
    return {};
  }

  // \x{1F600}, \x41, \u0041. A byte above ASCII is a piece of a character to Oniguruma.
  Result<void> Code() {
    const bool braces = in_.starts_with("\\x{");
    const size_t from = braces ? 3 : 2;
    const size_t most = braces ? 6 : (in_[1] == 'u' ? 4 : 2);
    const std::string_view rest = in_.substr(std::min(from, in_.size()));
    const size_t digits = std::min(rest.substr(0, most).find_first_not_of("0123456789abcdefABCDEF"),
                                   std::min(most, rest.size()));
    const bool complete =
        digits > 0 && (braces ? rest.substr(digits).starts_with('}') : digits == most);
    if (!complete || (in_[1] == 'x' && !braces && rest[0] >= '8')) return Refuse("this escape");
    out_ += fmt::format("\\x{{{}}}", rest.substr(0, digits));
    in_.remove_prefix(from + digits + (braces ? 1 : 0));
    return {};
  }

  std::string_view in_;
  std::string out_;
};

}  // namespace

Result<std::string> PcreOfOnig(std::string_view pattern) { return Translator(pattern).Run(); }

}  // namespace fathom
