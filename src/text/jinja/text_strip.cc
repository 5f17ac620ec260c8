#include "text/jinja/text_strip.h"

#include "text/unicode/letter_case.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// The length of the code point that `text` ends with.
size_t LastLength(std::string_view text) {
  for (size_t length = 1; length <= 4 && length <= text.size(); ++length) {
    const CodePoint point = FirstCodePoint(text.substr(text.size() - length));
    if (point.value != kNotUtf8 && point.length == length) return length;
  }
  return 1;
}

template <class Goes>
std::string_view StripLeftIf(std::string_view text, Goes goes) {
  while (!text.empty()) {
    const size_t length = FirstCodePoint(text).length;
    if (!goes(text.substr(0, length))) break;
    text.remove_prefix(length);
  }
  return text;
}

template <class Goes>
std::string_view StripRightIf(std::string_view text, Goes goes) {
  while (!text.empty()) {
    const size_t length = LastLength(text);
    if (!goes(text.substr(text.size() - length))) break;
    text.remove_suffix(length);
  }
  return text;
}

bool IsBlank(std::string_view point) { return IsSpace(FirstCodePoint(point).value); }

// Bytes of one code point never match across two others, so that find() is exact.
auto OneOf(std::string_view characters) {
  return [characters](std::string_view point) {
    return characters.find(point) != std::string_view::npos;
  };
}

}  // namespace

std::string_view StripLeft(std::string_view text) { return StripLeftIf(text, IsBlank); }
std::string_view StripRight(std::string_view text) { return StripRightIf(text, IsBlank); }

std::string_view StripLeft(std::string_view text, std::string_view characters) {
  return StripLeftIf(text, OneOf(characters));
}

std::string_view StripRight(std::string_view text, std::string_view characters) {
  return StripRightIf(text, OneOf(characters));
}

}  // namespace fathom
