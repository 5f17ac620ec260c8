// Text as code points, one after the other.
//
// Errors  Whatever is not UTF-8 (stray and overlong bytes, surrogates, values above U+10FFFF) is
//         one wrong byte: kNotUtf8, of length 1, and the next byte is looked at anew. Nothing is
//         lost: text that is cut where code points begin can be put together again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fathom {

constexpr uint32_t kMaxCodePoint = 0x10ffff;
constexpr uint32_t kNotUtf8 = 0xffffffff;

struct CodePoint {
  uint32_t value;   // kNotUtf8: a byte that is none
  uint32_t length;  // in bytes
};

// The one at the beginning of `text`, which must not be empty.
inline CodePoint FirstCodePoint(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  const auto continues = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first >= 0xc2 && first < 0xe0 && continues(1)) {
    return {(first & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  }
  if (first >= 0xe0 && first < 0xf0 && continues(1) && continues(2)) {
    const uint32_t value = (first & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    if (value >= 0x800 && (value < 0xd800 || value > 0xdfff)) return {value, 3};
  }
  if (first >= 0xf0 && first < 0xf5 && continues(1) && continues(2) && continues(3)) {
    const uint32_t value =
        (first & 0x7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
    if (value >= 0x10000 && value <= kMaxCodePoint) return {value, 4};
  }
  return {kNotUtf8, 1};
}

inline void AppendCodePoint(std::string& out, uint32_t value) {
  if (value < 0x80) {
    out += static_cast<char>(value);
  } else if (value < 0x800) {
    out += static_cast<char>(0xc0 | value >> 6);
    out += static_cast<char>(0x80 | (value & 0x3f));
  } else if (value < 0x10000) {
    out += static_cast<char>(0xe0 | value >> 12);
    out += static_cast<char>(0x80 | (value >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (value & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | value >> 18);
    out += static_cast<char>(0x80 | (value >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (value >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (value & 0x3f));
  }
}

// Where the first byte is that is not UTF-8; npos: nowhere.
size_t FindNotUtf8(std::string_view text);

}  // namespace fathom
