#include "text/jinja/text_position.h"

#include <cstdint>
#include <cstring>

#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// Whether eight bytes of ASCII are next: most text is.
bool EightAscii(std::string_view text) {
  uint64_t eight = 0;
  if (text.size() < sizeof(eight)) return false;
  std::memcpy(&eight, text.data(), sizeof(eight));
  return (eight & 0x8080808080808080) == 0;
}

}  // namespace

size_t CountCodePoints(std::string_view text) {
  size_t count = 0;
  while (!text.empty()) {
    const bool eight = EightAscii(text);
    text.remove_prefix(eight ? 8 : FirstCodePoint(text).length);
    count += eight ? 8 : 1;
  }
  return count;
}

size_t OffsetOf(std::string_view text, size_t number) {
  size_t at = 0;
  while (number > 0 && at < text.size()) {
    const bool eight = number >= 8 && EightAscii(text.substr(at));
    at += eight ? 8 : FirstCodePoint(text.substr(at)).length;
    number -= eight ? 8 : 1;
  }
  return at;
}

}  // namespace fathom
