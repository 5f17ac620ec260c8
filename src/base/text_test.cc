#include "base/text.h"

#include <gmock/gmock.h>

#include <array>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

TEST(EqualsIgnoreCase, ComparesAsciiLettersOnly) {
  EXPECT_TRUE(EqualsIgnoreCase("Content-LENGTH", "content-length"));
  EXPECT_TRUE(EqualsIgnoreCase("", ""));
  EXPECT_FALSE(EqualsIgnoreCase("close", "closed"));
  EXPECT_FALSE(EqualsIgnoreCase("@", "`")) << "they differ by the same bit as letters do";
  EXPECT_FALSE(EqualsIgnoreCase("\xc3\x89", "\xc3\xa9"));
}

TEST(Trim, TakesOffSurroundingSpaceOnly) {
  EXPECT_EQ(Trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(Trim("a"), "a");
  EXPECT_EQ(Trim(" \t\r\n"), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(SplitAny, LeavesEmptyPartsOut) {
  EXPECT_THAT(SplitAny(", a,b ,,c,", ", "), ElementsAre("a", "b", "c"));
  EXPECT_THAT(SplitAny("abc", ","), ElementsAre("abc"));
  EXPECT_THAT(SplitAny(",,", ","), IsEmpty());
  EXPECT_THAT(SplitAny("", ","), IsEmpty());
}

TEST(ParseDecimal, TakesDigitsAlone) {
  EXPECT_EQ(ParseDecimal("0"), 0u);
  EXPECT_EQ(ParseDecimal("007"), 7u);
  for (const std::string_view text : {"", "+1", "-1", " 1", "1 ", "0x1", "1.0", "1e3"}) {
    EXPECT_EQ(ParseDecimal(text), std::nullopt) << text;
  }
}

TEST(ParseDecimal, RefusesOverflow) {
  EXPECT_EQ(ParseDecimal("18446744073709551615"), 18446744073709551615u);
  EXPECT_EQ(ParseDecimal("18446744073709551616"), std::nullopt);
  EXPECT_EQ(ParseDecimal("18446744073709551620"), std::nullopt);
  EXPECT_EQ(ParseDecimal("99999999999999999999"), std::nullopt);
}

TEST(AppendJsonString, EscapesWhatMustBeEscaped) {
  EXPECT_EQ(Quoted("plain /text"), "\"plain /text\"");
  EXPECT_EQ(Quoted("a\"b\\c\nd\te"), "\"a\\\"b\\\\c\\nd\\u0009e\"");
  EXPECT_EQ(Quoted(std::string_view("\0\x1f\x7f", 3)), "\"\\u0000\\u001f\\u007f\"");
}

TEST(AppendJsonString, KeepsUtf8AndReplacesWhatIsNot) {
  EXPECT_EQ(Quoted("\u00e9\u20ac\U0001f600"), "\"\u00e9\u20ac\U0001f600\"");
  EXPECT_EQ(Quoted("a\xff"), "\"a\\ufffd\"");
  EXPECT_EQ(Quoted("\xc3"), "\"\\ufffd\"") << "cut off";
  EXPECT_EQ(Quoted("\xc0\xaf"), "\"\\ufffd\\ufffd\"") << "overlong";
  EXPECT_EQ(Quoted("\xe0\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\"") << "overlong";
  EXPECT_EQ(Quoted("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"") << "surrogate";
  EXPECT_EQ(Quoted("\xf4\x90\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\\ufffd\"") << "beyond Unicode";
}

TEST(AppendJsonString, EscapesWhatATerminalObeys) {
  const auto quoted = [](std::string_view text) {
    std::string out;
    AppendJsonString(out, text);
    return out;
  };
  EXPECT_EQ(quoted("a\xc2\x9b"
                   "31mb"),
            R"("a\u009b31mb")");
  EXPECT_EQ(quoted("\xc2\x80\xc2\x9f\xc2\xa0"), "\"\\u0080\\u009f\xc2\xa0\"");
  EXPECT_EQ(quoted("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae\xe2\x81\xa6"),
            R"("\u2028\u2029\u202e\u2066")");
  EXPECT_EQ(quoted("\xe2\x80\xa7\xe2\x80\xaf\xe2\x82\xac"),
            "\"\xe2\x80\xa7\xe2\x80\xaf\xe2\x82\xac\"");
  EXPECT_EQ(quoted("\x7f\x1b"), R"("\u007f\u001b")");
}

TEST(Nearest, SuggestsLikelyTyposOnly) {
  constexpr std::array<std::string_view, 3> kNames = {"port", "host", "router-mode"};
  EXPECT_EQ(Nearest("prot", kNames), "port");
  EXPECT_EQ(Nearest("router_mode", kNames), "router-mode");
  EXPECT_EQ(Nearest("completely-else", kNames), std::nullopt);
  EXPECT_EQ(Nearest("port", {}), std::nullopt);
}

TEST(EqualsInConstantTime, ComparesEveryByte) {
  EXPECT_TRUE(EqualsInConstantTime("secret", "secret"));
  EXPECT_TRUE(EqualsInConstantTime("", ""));
  EXPECT_FALSE(EqualsInConstantTime("secret", "secreT"));
  EXPECT_FALSE(EqualsInConstantTime("secret", "Secret"));
  EXPECT_FALSE(EqualsInConstantTime("secret", "secre"));
}

}  // namespace
}  // namespace fathom
