#include "base/peer_text.h"

namespace fathom {

std::string Shown(std::string_view text, size_t most) {
  std::string shown(text.substr(0, most));
  // Bytes above 0x7f are left alone but for those of C1, which terminals obey, too.
  for (size_t i = 0; i < shown.size(); ++i) {
    const auto c = static_cast<unsigned char>(shown[i]);
    const bool c1 =
        c == 0xc2 && i + 1 < shown.size() && static_cast<unsigned char>(shown[i + 1]) < 0xa0;
    if (c < 0x20 || c == 0x7f || c1) shown[i] = '?';
    if (c1) shown[i + 1] = '?';
  }
  if (text.size() > most) {
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xc0) == 0x80) {
      shown.pop_back();
    }
    if (!shown.empty() && static_cast<unsigned char>(shown.back()) >= 0x80) shown.pop_back();
    shown += "...";
  }
  return shown;
}

}  // namespace fathom
