#include "diagnose/findings/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "text/unicode/utf8.h"

namespace fathom {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

template <size_t N>
bool IsIn(const std::array<Range, N>& ranges, uint32_t value) {
  return std::ranges::any_of(
      ranges, [&](const Range& range) { return value >= range.first && value <= range.last; });
}

// What a screen does not draw, and what turns the direction of what it draws.
bool IsUnseen(uint32_t value) {
  constexpr std::array<Range, 12> kUnseen = {{
      {0x0, 0x1f},         // C0
      {0x7f, 0x9f},        // DEL, C1
      {0xad, 0xad},        // soft hyphen
      {0x61c, 0x61c},      // Arabic letter mark
      {0x180e, 0x180e},    // Mongolian vowel separator
      {0x200b, 0x200f},    // zero widths, left-to-right and right-to-left marks
      {0x2028, 0x202e},    // line and paragraph separators, embeddings and overrides
      {0x2060, 0x206f},    // invisible operators, isolates
      {0xfe00, 0xfe0f},    // variation selectors
      {0xfeff, 0xfeff},    // byte order mark
      {0xfff0, 0xfffb},    // annotations
      {0xe0000, 0xe0fff},  // tags, more selectors
  }};
  return IsIn(kUnseen, value);
}

bool IsWide(uint32_t value) {
  constexpr std::array<Range, 9> kWide = {{
      {0x1100, 0x115f},
      {0x2e80, 0x303e},
      {0x3041, 0xa4cf},
      {0xac00, 0xd7a3},
      {0xf900, 0xfaff},
      {0xfe30, 0xfe6f},
      {0xff00, 0xff60},
      {0x1f300, 0x1faff},
      {0x20000, 0x3fffd},
  }};
  return IsIn(kWide, value);
}

size_t WidthOf(uint32_t value) {
  if (value >= 0x300 && value <= 0x36f) return 0;  // drawn over the one before
  return IsWide(value) ? 2 : 1;
}

bool IsSpace(uint32_t value) {
  return value == ' ' || (value >= '\t' && value <= '\r') || value == 0x85 || value == 0x2028 ||
         value == 0x2029;
}

void AppendShown(std::string& out, std::string_view bytes, uint32_t value) {
  if (value == kNotUtf8) {
    AppendCodePoint(out, 0xfffd);
  } else if (!IsUnseen(value)) {
    out.append(bytes);
  } else if (value < 0x100) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", value);
  } else {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", value);
  }
}

template <class Do>
void ForEachCodePoint(std::string_view text, Do&& action) {
  while (!text.empty()) {
    const CodePoint point = FirstCodePoint(text);
    action(text.substr(0, point.length), point.value);
    text.remove_prefix(point.length);
  }
}

// How many bytes of the text fit into `width` columns; at least one code point.
size_t BytesThatFit(std::string_view text, size_t width) {
  size_t bytes = 0;
  size_t columns = 0;
  while (bytes < text.size()) {
    const CodePoint point = FirstCodePoint(text.substr(bytes));
    columns += WidthOf(point.value);
    if (columns > width && bytes > 0) break;
    bytes += point.length;
  }
  return bytes;
}

// The same, but a word is cut behind a mark that joins its parts, if there is one near the end.
size_t BytesBeforeCut(std::string_view word, size_t width) {
  const size_t bytes = BytesThatFit(word, width);
  if (bytes == word.size()) return bytes;
  const size_t mark = word.substr(0, bytes).find_last_of("/_-.,:=");
  return mark != std::string_view::npos && mark >= bytes / 2 ? mark + 1 : bytes;
}

// Fills lines word by word.
class Wrapper {
 public:
  Wrapper(size_t width, LongWords long_words) : width_(width), long_words_(long_words) {}

  void Add(std::string_view word) {
    const size_t columns = ColumnsOf(word);
    if (!line_.empty() && columns_ + 1 + columns > width_) EndLine();
    if (line_.empty() && columns > width_ && long_words_ == LongWords::kBreak) {
      word = AddPieces(word);
    }
    if (!line_.empty()) line_ += ' ';
    line_ += word;
    columns_ = ColumnsOf(line_);
  }

  std::vector<std::string> Take() && {
    if (!line_.empty() || lines_.empty()) EndLine();
    return std::move(lines_);
  }

 private:
  // Returns what is left of the word, which fits.
  std::string_view AddPieces(std::string_view word) {
    for (;;) {
      const size_t bytes = BytesBeforeCut(word, width_);
      if (bytes == word.size()) return word;
      lines_.emplace_back(word.substr(0, bytes));
      word.remove_prefix(bytes);
    }
  }

  void EndLine() {
    lines_.push_back(std::exchange(line_, {}));
    columns_ = 0;
  }

  const size_t width_;
  const LongWords long_words_;
  std::vector<std::string> lines_;
  std::string line_;
  size_t columns_ = 0;
};

// Each line as `append` shows it; no empty lines at the end.
template <class Append>
std::vector<std::string> LinesOf(std::string_view text, Append append) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    append(lines.emplace_back(), text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace

std::string OneLine(std::string_view text) {
  std::string out;
  bool space = false;
  ForEachCodePoint(text, [&](std::string_view bytes, uint32_t value) {
    if (IsSpace(value)) {
      space = !out.empty();
      return;
    }
    if (std::exchange(space, false)) out += ' ';
    AppendShown(out, bytes, value);
  });
  return out;
}

std::vector<std::string> CodeLines(std::string_view text) {
  return LinesOf(text, [](std::string& shown, std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    ForEachCodePoint(line, [&](std::string_view bytes, uint32_t value) {
      if (value == '\t') {
        shown += "    ";
      } else {
        AppendShown(shown, bytes, value);
      }
    });
  });
}

std::vector<std::string> DiffLines(std::string_view text) {
  return LinesOf(text, [](std::string& shown, std::string_view line) {
    const bool carriage = line.ends_with('\r');
    if (carriage) line.remove_suffix(1);
    ForEachCodePoint(line, [&](std::string_view bytes, uint32_t value) {
      if (value == '\t') {
        shown += '\t';
      } else {
        AppendShown(shown, bytes, value);
      }
    });
    if (carriage) shown += '\r';
  });
}

size_t ColumnsOf(std::string_view text) {
  size_t columns = 0;
  ForEachCodePoint(text, [&](std::string_view, uint32_t value) { columns += WidthOf(value); });
  return columns;
}

std::vector<std::string> Wrap(std::string_view line, size_t width, LongWords long_words) {
  Wrapper wrapper(width, long_words);
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) wrapper.Add(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return std::move(wrapper).Take();
}

}  // namespace fathom
