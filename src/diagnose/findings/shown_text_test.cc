#include "diagnose/findings/shown_text.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(OneLine, LeavesOrdinaryTextAsItIs) {
  EXPECT_EQ(OneLine("cached blocks: 0 (größer, 块, ✓)"), "cached blocks: 0 (größer, 块, ✓)");
  EXPECT_EQ(OneLine(""), "");
}

TEST(OneLine, MakesOneSpaceOfAllWhiteSpace) {
  EXPECT_EQ(OneLine(" \n a\r\n\tb\u2028c \u0085"), "a b c");
  EXPECT_EQ(OneLine(" \n\t"), "");
}

TEST(OneLine, ShowsControlsInsteadOfSendingThem) {
  EXPECT_EQ(OneLine("\x1b[2Jgone"), "\\x1b[2Jgone");
  EXPECT_EQ(OneLine(std::string_view("a\0b\x07\x7f", 5)), "a\\x00b\\x07\\x7f");
  EXPECT_EQ(OneLine("\u009b2J"), "\\x9b2J") << "C1 has a control sequence introducer of its own";
}

TEST(OneLine, ShowsMarksThatTurnOrHideText) {
  EXPECT_EQ(OneLine("a\u202eb\u2066c\u200bd\ufeff"), "a\\u202eb\\u2066c\\u200bd\\ufeff");
  EXPECT_EQ(OneLine("a\U000e0041"), "a\\ue0041");
}

TEST(OneLine, ReplacesWhatIsNotUtf8) { EXPECT_EQ(OneLine("a\xff\xc3"), "a\ufffd\ufffd"); }

TEST(OneLine, LeavesNothingBelowSpaceOfAnyByte) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string shown = OneLine(std::string("x") + static_cast<char>(byte) + "y");
    EXPECT_TRUE(std::ranges::all_of(shown, [](unsigned char c) { return c >= 0x20 && c != 0x7f; }))
        << byte;
  }
}

TEST(CodeLines, KeepsSpacesAndSplitsAtLineEnds) {
  EXPECT_THAT(CodeLines("a:\r\n  b: 1\n\n\tc\n\n"), ElementsAre("a:", "  b: 1", "", "    c"));
  EXPECT_THAT(CodeLines(""), IsEmpty());
  EXPECT_THAT(CodeLines("\n\n"), IsEmpty());
  EXPECT_THAT(CodeLines("+\x1b[31m"), ElementsAre("+\\x1b[31m"));
}

TEST(ColumnsOf, CountsWhatATerminalDraws) {
  EXPECT_EQ(ColumnsOf("abc"), 3u);
  EXPECT_EQ(ColumnsOf("größe ✓"), 7u);
  EXPECT_EQ(ColumnsOf("块块"), 4u);
  EXPECT_EQ(ColumnsOf("e\u0301"), 1u);
}

TEST(Wrap, CutsAtSpaces) {
  EXPECT_THAT(Wrap("one two three", 7, LongWords::kBreak), ElementsAre("one two", "three"));
  EXPECT_THAT(Wrap("one two three", 100, LongWords::kBreak), ElementsAre("one two three"));
  EXPECT_THAT(Wrap("", 7, LongWords::kBreak), ElementsAre(""));
}

TEST(DiffLines, KeepWhatAPatchNeeds) {
  EXPECT_THAT(DiffLines("--- a/x y\t\n-\ta\r\n+\tb\x1b\r\n"),
              ElementsAre("--- a/x y\t", "-\ta\r", "+\tb\\x1b\r"));
}

TEST(Wrap, LeavesALongWordWholeOrBreaksIt) {
  EXPECT_THAT(Wrap("see http://host/path now", 8, LongWords::kOverflow),
              ElementsAre("see", "http://host/path", "now"));
  EXPECT_THAT(Wrap("see abcdefghijkl now", 8, LongWords::kBreak),
              ElementsAre("see", "abcdefgh", "ijkl now"));
}

TEST(Wrap, BreaksALongWordBehindAMarkThatIsNearTheEnd) {
  EXPECT_THAT(Wrap("DYN_KV_CACHE_BLOCK_SIZE", 16, LongWords::kBreak),
              ElementsAre("DYN_KV_CACHE_", "BLOCK_SIZE"));
}

TEST(Wrap, KeepsToTheWidthWhateverTheText) {
  const std::string text = "块块块块 a bb/ccc__dddd eeeee-ffffff 块a块b块c " + std::string(70, 'x');
  for (size_t width = 2; width < 60; ++width) {
    std::string letters;
    for (const std::string& line : Wrap(text, width, LongWords::kBreak)) {
      EXPECT_LE(ColumnsOf(line), width);
      letters += line;
    }
    std::erase(letters, ' ');
    std::string expected = text;
    std::erase(expected, ' ');
    EXPECT_EQ(letters, expected) << "nothing is lost at width " << width;
  }
}

}  // namespace
}  // namespace fathom
