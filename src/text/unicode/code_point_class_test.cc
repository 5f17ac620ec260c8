#include "text/unicode/code_point_class.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

CodePointClass Of(uint32_t code_point) {
  return CodePointClasses::Table()[code_point] & ~(kInertInNfc | kSteadyInNfc);
}

TEST(CodePointClass, TellsLettersByCase) {
  EXPECT_EQ(Of('A'), kUpperLetter | kWordPart);
  EXPECT_EQ(Of('z'), kLowerLetter | kWordPart);
  EXPECT_EQ(Of(0x1c5), kUpperLetter | kWordPart) << "a title case letter";
  EXPECT_EQ(Of(0x2b0), kOtherLetter | kWordPart) << "a modifier letter";
  EXPECT_EQ(Of(0x4e2d), kOtherLetter | kWordPart);
}

TEST(CodePointClass, TellsMarksNumbersAndSigns) {
  EXPECT_EQ(Of(0x301), kMark | kWordPart);
  EXPECT_EQ(Of('7'), kNumber | kWordPart);
  EXPECT_EQ(Of(0xbd), kNumber) << "one half is no decimal digit";
  EXPECT_EQ(Of('_'), kPunctuation | kWordPart);
  EXPECT_EQ(Of('!'), kPunctuation);
  EXPECT_EQ(Of('$'), kSymbol);
  EXPECT_EQ(Of(0x24b6), kSymbol | kWordPart) << "a letter in a circle is alphabetic";
}

TEST(CodePointClass, KnowsWhiteSpace) {
  for (const uint32_t space : {0x9, 0xa, 0xd, 0x20, 0x85, 0xa0, 0x1680, 0x2003, 0x2028, 0x3000}) {
    EXPECT_TRUE(Of(space) & kSpace) << space;
  }
  for (const uint32_t other : {0x1c, 0x180e, 0x200b, 0x2060, 0xfeff}) {
    EXPECT_FALSE(Of(other) & kSpace) << other;
  }
}

TEST(CodePointClass, KnowsUnicode16) {
  EXPECT_EQ(Of(0x10d40), kNumber | kWordPart);
  EXPECT_EQ(Of(0x31350), kOtherLetter | kWordPart);
  EXPECT_EQ(Of(0x1b4e), kPunctuation);
}

TEST(CodePointClass, HasNothingToSayAboutWhatIsNoCharacter) {
  EXPECT_EQ(Of(kNotUtf8), 0);
  EXPECT_EQ(Of(0xd800), 0);
  EXPECT_EQ(Of(0xe000), 0) << "private use";
  EXPECT_EQ(Of(0x10ffff), 0);
  EXPECT_EQ(Of(0x110000), 0);
}

}  // namespace
}  // namespace fathom
