#include "text/tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

namespace fathom {
namespace {

TEST(ByteAlphabet, HasACharacterForEachByte) {
  std::set<uint32_t> seen;
  for (int byte = 0; byte < 256; ++byte) {
    seen.insert(CharacterOfByte(static_cast<uint8_t>(byte)));
    const std::string bytes(1, static_cast<char>(byte));
    EXPECT_EQ(BytesOfCharacters(CharactersOfBytes(bytes)), bytes);
  }
  EXPECT_EQ(seen.size(), 256);
}

TEST(ByteAlphabet, WritesASpaceAsVocabulariesDo) {
  EXPECT_EQ(CharactersOfBytes(" the\n"), "\u0120the\u010a");
  EXPECT_EQ(CharactersOfBytes("\u00fc"), "\u00c3\u00bc");
  EXPECT_EQ(CharacterOfByte(0xad), 0x143) << "the last one that does not stand for itself";
}

TEST(ByteAlphabet, RefusesOtherCharacters) {
  EXPECT_EQ(BytesOfCharacters("a b"), std::nullopt);
  EXPECT_EQ(BytesOfCharacters("\u4e2d"), std::nullopt);
  EXPECT_EQ(BytesOfCharacters("\u0144"), std::nullopt);
  EXPECT_EQ(BytesOfCharacters("\xff"), std::nullopt);
}

}  // namespace
}  // namespace fathom
