#include "text/jinja/text_split.h"

#include <algorithm>

#include "text/jinja/text_strip.h"
#include "text/unicode/letter_case.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

using Pieces = std::vector<std::string_view>;

// How long the run at the beginning of `text` is that has no whitespace.
size_t WordLength(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = FirstCodePoint(text.substr(at));
    if (IsSpace(point.value)) break;
    at += point.length;
  }
  return at;
}

Pieces SplitWords(std::string_view text, int64_t most) {
  Pieces pieces;
  for (text = StripLeft(text); !text.empty(); text = StripLeft(text)) {
    if (most >= 0 && static_cast<int64_t>(pieces.size()) == most) {
      pieces.push_back(text);
      break;
    }
    const size_t length = WordLength(text);
    pieces.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return pieces;
}

Pieces SplitWordsRight(std::string_view text, int64_t most) {
  // Where the words are, then all but the last ones put together again.
  const Pieces words = SplitWords(text, -1);
  if (most < 0 || static_cast<int64_t>(words.size()) <= most) return words;
  const size_t joined = words.size() - static_cast<size_t>(most);
  const char* end = words[joined - 1].data() + words[joined - 1].size();
  Pieces pieces{std::string_view(text.data(), end)};
  pieces.insert(pieces.end(), words.begin() + static_cast<ptrdiff_t>(joined), words.end());
  return pieces;
}

// The length of the line break at the beginning of `text`; 0: there is none.
size_t LineBreak(std::string_view text) {
  if (text.starts_with("\r\n")) return 2;
  const CodePoint point = FirstCodePoint(text);
  switch (point.value) {
    case '\n':
    case '\r':
    case '\v':
    case '\f':
    case 0x1c:
    case 0x1d:
    case 0x1e:
    case 0x85:
    case 0x2028:
    case 0x2029:
      return point.length;
    default:
      return 0;
  }
}

}  // namespace

Pieces SplitLeft(std::string_view text, std::optional<std::string_view> separator, int64_t most) {
  if (!separator) return SplitWords(text, most);
  Pieces pieces;
  while (most < 0 || static_cast<int64_t>(pieces.size()) < most) {
    const size_t found = text.find(*separator);
    if (found == std::string_view::npos) break;
    pieces.push_back(text.substr(0, found));
    text.remove_prefix(found + separator->size());
  }
  pieces.push_back(text);
  return pieces;
}

Pieces SplitRight(std::string_view text, std::optional<std::string_view> separator, int64_t most) {
  if (!separator) return SplitWordsRight(text, most);
  Pieces pieces;
  while (most < 0 || static_cast<int64_t>(pieces.size()) < most) {
    const size_t found = text.rfind(*separator);
    if (found == std::string_view::npos) break;
    pieces.push_back(text.substr(found + separator->size()));
    text = text.substr(0, found);
  }
  pieces.push_back(text);
  std::ranges::reverse(pieces);
  return pieces;
}

Pieces SplitLines(std::string_view text, bool keep_ends) {
  Pieces lines;
  size_t at = 0;
  while (at < text.size()) {
    const size_t line_break = LineBreak(text.substr(at));
    if (line_break == 0) {
      at += FirstCodePoint(text.substr(at)).length;
      continue;
    }
    lines.push_back(text.substr(0, keep_ends ? at + line_break : at));
    text.remove_prefix(at + line_break);
    at = 0;
  }
  if (!text.empty()) lines.push_back(text);
  return lines;
}

}  // namespace fathom
