#include "codec/base64.h"

#include <cstdint>

namespace fathom {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kWhite = " \t\r\n";

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view part = bytes.substr(i, 3);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < part.size() ? static_cast<unsigned char>(part[k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += k <= part.size() ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  size_t digits = 0;
  size_t padding = 0;
  for (const char c : text) {
    if (kWhite.contains(c)) continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos || padding > 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (++digits % 4 == 0) {
      for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 255);
    }
  }
  const size_t rest = digits % 4;
  const bool whole = rest != 1 && (padding == 0 || (digits + padding) % 4 == 0) && padding < 3;
  if (!whole) return std::nullopt;
  if (rest == 2) out += static_cast<char>(bits >> 4 & 255);
  if (rest == 3) {
    out += static_cast<char>(bits >> 10 & 255);
    out += static_cast<char>(bits >> 2 & 255);
  }
  return out;
}

}  // namespace fathom
