#include "text/unicode/utf8.h"

#include <cstring>

namespace fathom {

size_t FindNotUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    uint64_t eight = 0;
    if (text.size() - at >= sizeof(eight)) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if ((eight & 0x8080808080808080) == 0) {
        at += sizeof(eight);
        continue;
      }
    }
    const CodePoint next = FirstCodePoint(text.substr(at));
    if (next.value == kNotUtf8) return at;
    at += next.length;
  }
  return std::string_view::npos;
}

}  // namespace fathom
