#include "text/unicode/normal_form.h"

#include <gtest/gtest.h>

#include <vector>

#include "text/unicode/code_point_class.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

std::string Nfc(std::string_view text) { return Normalized(NormalForm::kNfc, text); }

TEST(NormalForm, ComposesAndDecomposes) {
  EXPECT_EQ(Nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(Normalized(NormalForm::kNfd, "\u00e9"), "e\u0301");
  EXPECT_EQ(Nfc("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(Nfc("\u212b"), "\u00c5") << "the sign of the angstrom is a letter";
  EXPECT_EQ(Nfc("\u0958"), "\u0915\u093c") << "never composed again";
}

TEST(NormalForm, TakesCompatibleCharactersForTheSameOnlyWhenAsked) {
  EXPECT_EQ(Nfc("\ufb01"), "\ufb01");
  EXPECT_EQ(Normalized(NormalForm::kNfkc, "\ufb01\uff21"), "fiA");
  EXPECT_EQ(Normalized(NormalForm::kNfkd, "\u2460\u00e9"), "1e\u0301");
}

TEST(NormalForm, PutsMarksInOrder) {
  EXPECT_EQ(Nfc("a\u0301\u0323"), "\u1ea1\u0301");
  EXPECT_EQ(Nfc("q\u0307\u0323"), "q\u0323\u0307");
}

TEST(NormalForm, LeavesBytesThatAreNotUtf8InPlace) {
  EXPECT_EQ(Nfc("e\xff\u0301"), "e\xff\u0301") << "a mark does not reach across";
  EXPECT_EQ(Nfc("\xff-e\u0301\x80\xc3"), "\xff-\u00e9\x80\xc3");
  EXPECT_EQ(Normalized(NormalForm::kNfkd, "\u00e9\xff\u00e9"),
            "e\u0301\xff"
            "e\u0301");
}

TEST(NormalForm, SeesAtAGlanceOnlyWhatIsTrue) {
  EXPECT_TRUE(IsPlainlyNormal(NormalForm::kNfc, "plain ASCII text, a long line of it"));
  EXPECT_TRUE(IsPlainlyNormal(NormalForm::kNfc, "\u00fcber \u4e2d\u6587 \ud55c\uad6d\uc5b4"));
  EXPECT_TRUE(IsPlainlyNormal(NormalForm::kNfc, "\u0e44\u0e17\u0e22\u0e48"))
      << "a mark that joins nothing";
  EXPECT_FALSE(IsPlainlyNormal(NormalForm::kNfc, "e\u0301"));
  EXPECT_FALSE(IsPlainlyNormal(NormalForm::kNfd, "\u00e9"));
}

// Each code point between others: whatever is called normal at a glance is, and the stretches that
// are normalized by themselves add up to what the whole text would be.
TEST(NormalForm, IsTheSameInStretchesAsInOne) {
  for (uint32_t value = 0x80; value <= kMaxCodePoint; ++value) {
    if (value >= 0xd800 && value <= 0xdfff) continue;
    if (value > 0x30000 && value % 251 != 0) continue;
    for (const std::string_view around : {"a", "\u0301", "\u1100", "\uac00", "\u0323"}) {
      std::string text(around);
      AppendCodePoint(text, value);
      text += around;
      // Through the decomposed form, which is made without stretches.
      const std::string decomposed = Normalized(NormalForm::kNfd, text);
      const std::string composed = Nfc(text);
      ASSERT_EQ(Nfc(decomposed), composed) << std::hex << value;
      ASSERT_EQ(Normalized(NormalForm::kNfd, composed), decomposed) << std::hex << value;
      ASSERT_EQ(Nfc(composed), composed) << std::hex << value;
      if (!IsPlainlyNormal(NormalForm::kNfc, text)) continue;
      ASSERT_EQ(composed, text) << std::hex << value;
    }
  }
}

TEST(NormalForm, OrdersHundredThousandMarks) {
  std::string text = "a";
  for (int i = 0; i < 100'000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";
  const std::string normal = Nfc(text);
  EXPECT_EQ(normal.substr(0, 5), "\u1ea1\u0323");
  EXPECT_TRUE(normal.ends_with("\u0301\u0301"));
}

TEST(Lowercased, GoesCharacterByCharacter) {
  EXPECT_EQ(Lowercased("HELLO \u00c4\u0416"), "hello \u00e4\u0436");
  EXPECT_EQ(Lowercased("\u0130"), "i\u0307");
  EXPECT_EQ(Lowercased("\u039f\u03a3"), "\u03bf\u03c3") << "no final sigma";
  EXPECT_EQ(Lowercased("A\xff"
                       "B"),
            "a\xff"
            "b");
}

}  // namespace
}  // namespace fathom
