// Bytes as characters, the way byte-level vocabularies write them: printable Latin-1 stands for
// itself, the 68 other bytes are the characters from U+0100 on (a space is U+0120).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

// The code point that stands for a byte.
uint32_t CharacterOfByte(uint8_t byte);

// The bytes that a text of such characters stands for; nothing if another character is among them.
std::optional<std::string> BytesOfCharacters(std::string_view text);

// The other way around.
std::string CharactersOfBytes(std::string_view bytes);

}  // namespace fathom
