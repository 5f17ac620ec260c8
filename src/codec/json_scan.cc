#include "codec/json_scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "codec/byte_scan.h"

namespace fathom {
namespace {

bool IsJsonDigit(char c) { return c >= '0' && c <= '9'; }

bool IsJsonSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

int JsonHexDigit(char c) {
  if (IsJsonDigit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The value of four hexadecimal digits, or -1.
int32_t HexQuad(std::string_view text) {
  if (text.size() < 4) return -1;
  int32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    const int digit = JsonHexDigit(text[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

// The form of a list of token ids: integers, commas, and at most one space after a comma. In such
// text the kind of the preceding byte decides whether a byte is allowed, which can be tested for
// sixteen bytes at once. Starts where a value is due; returns the last position where a value is
// due and before which the text is valid.
const char* SkipIntegers(const char* from, const char* end) {
  const char* due = from;
  uint32_t after_digit = 0, after_comma = 1, after_space = 0, after_zero = 0;  // bit 0: the carry
  for (; end - from >= 16; from += 16) {
    const Bytes16 bytes = Bytes16::Load(from);
    const uint32_t digits = bytes.InRange('0', '9').Mask();
    const uint32_t commas = bytes.Equal(',').Mask();
    const uint32_t spaces = bytes.Equal(' ').Mask();
    if ((digits | commas | spaces) != 0xffff) break;
    after_digit |= digits << 1;
    after_comma |= commas << 1;
    after_space |= spaces << 1;
    const uint32_t starts = digits & ~after_digit;
    after_zero |= (bytes.Equal('0').Mask() & starts)
                  << 1;  // a number that begins with 0 ends there
    const uint32_t misplaced = (commas & ~after_digit) | (spaces & ~after_comma) |
                               (starts & ~(after_comma | after_space)) | (digits & after_zero);
    if (misplaced != 0) break;
    if (commas != 0) due = from + std::bit_width(commas);
    after_digit >>= 16, after_comma >>= 16, after_space >>= 16, after_zero >>= 16;
  }
  return due;
}

// Moves over JSON and checks it. Functions return false at the first error; at() is then its
// position, and problem() its text.
class Walker {
 public:
  // `depth` objects are open around `at`.
  Walker(std::string_view in, size_t at, size_t depth)
      : begin_(in.data()), at_(in.data() + at), end_(in.data() + in.size()), depth_(depth) {}

  size_t at() const { return static_cast<size_t>(at_ - begin_); }
  const char* problem() const { return problem_; }
  bool AtEnd() const { return at_ == end_; }

  void SkipSpace() {
    while (at_ != end_ && IsJsonSpace(*at_)) ++at_;
  }
  bool NextIs(char c) const { return at_ != end_ && *at_ == c; }
  // Takes the byte if it is next.
  bool Take(char c) { return NextIs(c) && (++at_, true); }
  bool String();
  bool Colon();
  bool Value();

 private:
  bool Wrong(const char* problem) {
    problem_ = problem;
    return false;
  }

  enum class Step : uint8_t { kValueDue, kValueRead, kWrong };

  Step StepIf(bool fine) { return fine ? Step::kValueRead : Step::kWrong; }
  Step Begin();
  Step Open(bool object);
  Step Continue();
  bool Key();
  bool Escape();
  bool Number();
  bool Digits();
  bool Literal(std::string_view word);

  bool InObject() const { return open_[(depth_ - 1) / 64] >> ((depth_ - 1) % 64) & 1; }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const char* problem_ = nullptr;
  size_t depth_;
  std::array<uint64_t, JsonScanner::kMaxDepth / 64> open_{};  // bit per level: 1 is an object
};

bool Walker::String() {
  if (!Take('"')) return Wrong("expected a string");
  for (;;) {
    at_ = FindStringByte(at_, end_);
    if (at_ == end_) return Wrong("the string does not end");
    if (*at_ == '"') break;
    if (*at_ != '\\') return Wrong("control byte in a string");
    if (!Escape()) return Wrong("invalid escape in a string");
  }
  ++at_;
  return true;
}

bool Walker::Escape() {
  if (end_ - at_ < 2) return false;
  if (at_[1] == 'u') {
    if (HexQuad({at_ + 2, end_}) < 0) return false;
    at_ += 6;
    return true;
  }
  constexpr std::string_view kShort = "\"\\/bfnrt";
  if (kShort.find(at_[1]) == kShort.npos) return false;
  at_ += 2;
  return true;
}

bool Walker::Digits() {
  const char* const first = at_;
  while (at_ != end_ && IsJsonDigit(*at_)) ++at_;
  return at_ != first || Wrong("expected a digit");
}

bool Walker::Number() {
  Take('-');
  if (!Take('0') && !Digits()) return false;
  if (Take('.') && !Digits()) return false;
  if (!Take('e') && !Take('E')) return true;
  if (!Take('-')) Take('+');
  return Digits();
}

bool Walker::Literal(std::string_view word) {
  if (!std::string_view(at_, end_).starts_with(word)) return Wrong("expected a value");
  at_ += word.size();
  return true;
}

// Including the space around it.
bool Walker::Colon() {
  SkipSpace();
  if (!Take(':')) return Wrong("expected ':'");
  SkipSpace();
  return true;
}

bool Walker::Key() {
  SkipSpace();
  return String() && Colon();
}

Walker::Step Walker::Open(bool object) {
  if (depth_ == JsonScanner::kMaxDepth) return StepIf(Wrong("nested too deeply"));
  ++at_;
  SkipSpace();
  if (Take(object ? '}' : ']')) return Step::kValueRead;
  const uint64_t bit = uint64_t{1} << (depth_ % 64);
  uint64_t& word = open_[depth_ / 64];
  word = object ? word | bit : word & ~bit;
  ++depth_;
  if (object) return Key() ? Step::kValueDue : Step::kWrong;
  at_ = SkipIntegers(at_, end_);
  return Step::kValueDue;
}

// A value is due: reads it if it is simple, or reads its opening bracket.
Walker::Step Walker::Begin() {
  SkipSpace();
  if (at_ == end_) return StepIf(Wrong("expected a value"));
  switch (*at_) {
    case '{':
      return Open(true);
    case '[':
      return Open(false);
    case '"':
      return StepIf(String());
    case 't':
      return StepIf(Literal("true"));
    case 'f':
      return StepIf(Literal("false"));
    case 'n':
      return StepIf(Literal("null"));
    default:
      if (*at_ != '-' && !IsJsonDigit(*at_)) return StepIf(Wrong("expected a value"));
      return StepIf(Number());
  }
}

// A value inside an object or array has been read: reads the separator or the end.
Walker::Step Walker::Continue() {
  SkipSpace();
  const bool object = InObject();
  if (Take(',')) return !object || Key() ? Step::kValueDue : Step::kWrong;
  if (!Take(object ? '}' : ']')) {
    return StepIf(Wrong(object ? "expected ',' or '}'" : "expected ',' or ']'"));
  }
  --depth_;
  return Step::kValueRead;
}

bool Walker::Value() {
  const size_t base = depth_;
  for (Step step = Begin(); step != Step::kWrong;
       step = step == Step::kValueDue ? Begin() : Continue()) {
    if (step == Step::kValueRead && depth_ == base) return true;
  }
  return false;
}

void AppendUtf8(std::string& out, uint32_t point) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((point >> shift) & 0x3f)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | (point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | (point >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | (point >> 18));
    tail(12), tail(6), tail(0);
  }
}

// `raw` begins with \u. Takes the escape, and a second one if both form a surrogate pair.
bool UnescapeUnicode(std::string_view& raw, std::string& out) {
  const int32_t first = HexQuad(raw.substr(2));
  if (first < 0) return false;
  raw.remove_prefix(6);
  if (first < 0xd800 || first > 0xdfff) return AppendUtf8(out, static_cast<uint32_t>(first)), true;
  if (first > 0xdbff || !raw.starts_with("\\u")) return false;
  const int32_t second = HexQuad(raw.substr(2));
  if (second < 0xdc00 || second > 0xdfff) return false;
  raw.remove_prefix(6);
  AppendUtf8(out, static_cast<uint32_t>(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)));
  return true;
}

// `raw` is the text between the quotes.
std::optional<std::string> UnescapedText(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  if (!AppendJsonText(raw, out)) return std::nullopt;
  return out;
}

}  // namespace

Result<std::optional<JsonScanner::Member>> JsonScanner::Next() {
  if (state_ == State::kEnd) return std::nullopt;
  Walker walker(in_, at_, 1);
  const auto wrong = [&](const char* problem) {
    return Fail(Blame::kCaller, "invalid JSON at byte {}: {}", walker.at(), problem);
  };
  walker.SkipSpace();
  if (state_ == State::kStart) {
    if (!walker.Take('{')) return wrong("expected an object");
    walker.SkipSpace();
  }
  if (walker.Take('}')) {
    walker.SkipSpace();
    if (!walker.AtEnd()) return wrong("unexpected bytes after the object");
    state_ = State::kEnd;
    return std::nullopt;
  }
  if (state_ == State::kMembers && !walker.Take(',')) return wrong("expected ',' or '}'");
  walker.SkipSpace();
  const size_t key = walker.at();
  if (!walker.String()) return wrong(walker.problem());
  const size_t key_end = walker.at();
  if (!walker.Colon()) return wrong(walker.problem());
  const size_t value = walker.at();
  if (!walker.Value()) return wrong(walker.problem());
  state_ = State::kMembers;
  at_ = walker.at();
  return Member{in_.substr(key + 1, key_end - key - 2), in_.substr(value, at_ - value)};
}

bool JsonKeyIs(std::string_view raw_key, std::string_view name) {
  if (raw_key.find('\\') == raw_key.npos) return raw_key == name;
  const std::optional<std::string> key = UnescapedText(raw_key);
  return key && *key == name;
}

bool JsonKeyStartsWith(std::string_view raw_key, std::string_view prefix) {
  if (raw_key.find('\\') == raw_key.npos) return raw_key.starts_with(prefix);
  const std::optional<std::string> key = UnescapedText(raw_key);
  return key && key->starts_with(prefix);
}

std::optional<std::string> JsonText(std::string_view raw_value) {
  if (raw_value.size() < 2 || !raw_value.starts_with('"') || !raw_value.ends_with('"')) {
    return std::nullopt;
  }
  return UnescapedText(raw_value.substr(1, raw_value.size() - 2));
}

bool AppendJsonText(std::string_view raw, std::string& out) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  for (;;) {
    const size_t plain = std::min(raw.find('\\'), raw.size());
    out += raw.substr(0, plain);
    raw.remove_prefix(plain);
    if (raw.empty()) return true;
    if (raw.starts_with("\\u")) {
      if (!UnescapeUnicode(raw, out)) return false;
      continue;
    }
    const size_t which = raw.size() < 2 ? kEscapes.npos : kEscapes.find(raw[1]);
    if (which == kEscapes.npos) return false;
    out += kMeanings[which];
    raw.remove_prefix(2);
  }
}

JsonElements::JsonElements(std::string_view raw_array) : in_(raw_array) {
  if (!in_.starts_with('[')) in_ = {};
}

std::optional<std::string_view> JsonElements::Next() {
  if (at_ == in_.size()) return std::nullopt;
  Walker walker(in_, at_ + 1, 0);  // past '[' or ','
  walker.SkipSpace();
  const size_t begin = walker.at();
  if (walker.NextIs(']') || !walker.Value()) {
    at_ = in_.size();
    return std::nullopt;
  }
  const size_t end = walker.at();
  walker.SkipSpace();
  at_ = walker.NextIs(',') ? walker.at() : in_.size();
  return in_.substr(begin, end - begin);
}

}  // namespace fathom
