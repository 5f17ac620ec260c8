// Where are the bytes of a YAML scalar? The library tells only where it starts.
#include <algorithm>

#include "diagnose/manifest/yaml_tree.h"

namespace fathom {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

bool Blank(char c) { return kBlank.contains(c); }

size_t LineEnd(std::string_view text, size_t at) {
  return std::min(text.find('\n', at), text.size());
}

// 0 where the quote is never closed, which the library lets pass.
size_t QuotedLength(std::string_view text, size_t offset) {
  const char quote = text[offset];
  for (size_t at = offset + 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || at + 1 == text.size() || text[at + 1] != quote) return at + 1 - offset;
      ++at;
    }
  }
  return 0;
}

// The lines below the header that are blank or as far in as the first one.
size_t BlockLength(std::string_view text, size_t offset, std::string_view value) {
  size_t end = LineEnd(text, offset);
  if (std::ranges::all_of(value, Blank)) return end - offset;
  size_t indent = text.npos;
  for (size_t line = end + 1; line < text.size();) {
    const size_t next = LineEnd(text, line);
    const size_t first = std::min(text.find_first_not_of(' ', line), text.size());
    const bool blank = first >= next || text[first] == '\r';
    if (!blank) {
      if (indent == text.npos) indent = first - line;
      if (first - line < indent) break;
      end = next;
    }
    line = next + 1;
  }
  if (end > offset && text[end - 1] == '\r') --end;
  return end - offset;
}

// What a backslash at `at` stands for: how many bytes of the text, and whether it has a value.
struct Escape {
  size_t length = 2;
  bool line_break = false;
};

Escape EscapeAt(std::string_view text, size_t at) {
  if (at + 1 >= text.size()) return {1, false};
  switch (text[at + 1]) {
    case 'x':
      return {4, false};
    case 'u':
      return {6, false};
    case 'U':
      return {10, false};
    case '\r':
    case '\n':
      return {2, true};
    default:
      return {2, false};
  }
}

// Walks along source and value: both have the same characters in the same order, except for blanks,
// which lines lose or gain, and for escapes.
class Alignment {
 public:
  Alignment(std::string_view source, size_t at, char quote, std::string_view value)
      : source_(source), at_(at), quote_(quote), value_(value) {}

  std::optional<std::vector<size_t>> Run() {
    origins_.reserve(value_.size());
    while (origins_.size() < value_.size()) {
      if (at_ >= source_.size() || !Step()) return Trailing();
    }
    return std::move(origins_);
  }

  size_t end() const { return at_; }

 private:
  bool Step() {
    const char wanted = value_[origins_.size()];
    const char found = source_[at_];
    if (quote_ == '"' && found == '\\') return TakeEscape();
    if (quote_ == '\'' && found == '\'' && wanted == '\'') return Take(1, 2);
    if (found == wanted) return Take(1, 1);
    if (!Blank(found)) return false;
    if (Blank(wanted)) return Take(1, 1);
    ++at_;
    return true;
  }

  bool TakeEscape() {
    const Escape escape = EscapeAt(source_, at_);
    if (escape.line_break) return Take(0, escape.length);
    return Take(Utf8Length(value_[origins_.size()]), escape.length);
  }

  bool Take(size_t of_value, size_t of_source) {
    for (size_t i = 0; i < of_value && origins_.size() < value_.size(); ++i) {
      origins_.push_back(at_);
    }
    at_ = std::min(at_ + of_source, source_.size());
    return true;
  }

  // A block scalar ends with a line break that the file may lack.
  std::optional<std::vector<size_t>> Trailing() {
    if (!std::ranges::all_of(value_.substr(origins_.size()), Blank)) return std::nullopt;
    origins_.resize(value_.size(), at_ == 0 ? 0 : at_ - 1);
    return std::move(origins_);
  }

  static size_t Utf8Length(char lead) {
    const auto byte = static_cast<unsigned char>(lead);
    if (byte < 0x80) return 1;
    return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
  }

  const std::string_view source_;
  size_t at_;
  const char quote_;
  const std::string_view value_;
  std::vector<size_t> origins_;
};

bool IsBlock(char quote) { return quote == '|' || quote == '>'; }

// Where the value begins: behind the quote, or on the line after the header.
size_t ContentStart(const YamlNode& scalar) {
  if (scalar.quote == 0) return scalar.offset;
  if (!IsBlock(scalar.quote)) return scalar.offset + 1;
  return std::min(LineEnd(scalar.passage->text(), scalar.offset) + 1,
                  scalar.offset + scalar.length);
}

}  // namespace

size_t ScalarLength(std::string_view text, size_t offset, std::string_view value) {
  if (offset >= text.size()) return 0;
  const char first = text[offset];
  if (first == '"' || first == '\'') return QuotedLength(text, offset);
  if (IsBlock(first)) return BlockLength(text, offset, value);
  if (text.substr(offset).starts_with(value)) return value.size();
  Alignment alignment(text, offset, 0, value);
  return alignment.Run() ? alignment.end() - offset : 0;
}

std::optional<Passage> PassageOf(const YamlNode& scalar) {
  if (scalar.kind != YamlNode::Kind::kScalar || scalar.length == 0) return std::nullopt;
  const std::string_view text = scalar.passage->text();
  const size_t start = ContentStart(scalar);
  const size_t end = scalar.offset + scalar.length;
  if (scalar.quote == '|') return scalar.passage->Part(start, end - start);
  if (text.substr(start).starts_with(scalar.text)) {
    return scalar.passage->Part(start, scalar.text.size());
  }
  const auto origins = Alignment(text.substr(0, end), start, scalar.quote, scalar.text).Run();
  if (!origins) return std::nullopt;
  return scalar.passage->Rewritten(scalar.text, *origins);
}

}  // namespace fathom
