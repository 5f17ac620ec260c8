#include "text/unicode/letter_case.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

TEST(LetterCase, MapsOneLetterToSeveralWhereUnicodeDoes) {
  EXPECT_EQ(ToUpper("straße ﬁ"), "STRASSE FI");
  EXPECT_EQ(ToTitle("ßa ǆ"), "Ssa ǅ");
  EXPECT_EQ(ToLower("İ"), "i̇");
}

TEST(LetterCase, WritesASigmaAtTheEndOfAWordInItsOwnWay) {
  EXPECT_EQ(ToLower("ΑΣ ΣΑΣ Σ"), "ας σας σ");
  EXPECT_EQ(ToLower("ΑΣ'Β"), "ασ'β");
}

TEST(LetterCase, BeginsAWordAfterWhateverIsNoLetter) {
  EXPECT_EQ(ToTitle("they're bill's 2nd"), "They'Re Bill'S 2Nd");
  EXPECT_EQ(ToCapitalized("éCOLE Élan"), "École élan");
  EXPECT_EQ(ToSwappedCase("aBß"), "AbSS");
}

TEST(LetterCase, LeavesBytesAloneThatAreNotUtf8) {
  EXPECT_EQ(ToUpper("a\xff\xc3z"), "A\xff\xc3Z");
  EXPECT_EQ(ToLower("A\xff\xc3Z"), "a\xff\xc3z");
}

TEST(LetterCase, KnowsPythonsWhitespace) {
  for (const uint32_t space : {0x09, 0x0d, 0x1c, 0x1f, 0x20, 0x85, 0xa0, 0x2003, 0x2028, 0x3000}) {
    EXPECT_TRUE(IsSpace(space)) << space;
  }
  for (const uint32_t other : {0x00, 0x1b, 0x21, 0x200b, 0xfeff})
    EXPECT_FALSE(IsSpace(other)) << other;
}

TEST(LetterCase, KnowsWhatPythonPrints) {
  for (const uint32_t printable : {0x20, 0xe9, 0x4f60, 0x1f30d})
    EXPECT_TRUE(IsPrintable(printable));
  for (const uint32_t other : {0x00, 0x7f, 0xa0, 0xad, 0x200b, 0xe000, 0x10ffff}) {
    EXPECT_FALSE(IsPrintable(other)) << other;
  }
}

TEST(LetterCase, TellsDigitsFromOtherNumbers) {
  EXPECT_TRUE(IsDigit('7'));
  EXPECT_TRUE(IsDigit(0x0663));
  EXPECT_TRUE(IsDigit(0xb2));
  EXPECT_FALSE(IsDigit(0xbd));
  EXPECT_TRUE(IsNumeric(0xbd));
}

}  // namespace
}  // namespace fathom
