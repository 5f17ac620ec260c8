#include "text/tokenizer/byte_alphabet.h"

#include <array>

#include "text/unicode/utf8.h"

namespace fathom {
namespace {

constexpr uint32_t kEnd = 0x144;  // past the last character
constexpr uint16_t kNoByte = 256;

constexpr bool StandsForItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte != 0xad);
}

constexpr auto kCharacters = [] {
  std::array<uint16_t, 256> characters{};
  uint16_t next = 0x100;
  for (uint16_t byte = 0; byte < 256; ++byte) {
    characters[byte] = StandsForItself(byte) ? byte : next++;
  }
  return characters;
}();

constexpr auto kBytes = [] {
  std::array<uint16_t, kEnd> bytes{};
  bytes.fill(kNoByte);
  for (uint16_t byte = 0; byte < 256; ++byte) bytes[kCharacters[byte]] = byte;
  return bytes;
}();

}  // namespace

uint32_t CharacterOfByte(uint8_t byte) { return kCharacters[byte]; }

std::optional<std::string> BytesOfCharacters(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const CodePoint next = FirstCodePoint(text);
    if (next.value >= kEnd || kBytes[next.value] == kNoByte) return std::nullopt;
    bytes += static_cast<char>(kBytes[next.value]);
    text.remove_prefix(next.length);
  }
  return bytes;
}

std::string CharactersOfBytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) AppendCodePoint(text, CharacterOfByte(static_cast<uint8_t>(byte)));
  return text;
}

}  // namespace fathom
