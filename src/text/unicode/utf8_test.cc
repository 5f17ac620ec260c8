#include "text/unicode/utf8.h"

#include <gtest/gtest.h>

#include <vector>

namespace fathom {
namespace {

using namespace std::string_literals;

TEST(Utf8, ReadsWhatItWrites) {
  for (uint32_t value = 0; value <= kMaxCodePoint; ++value) {
    if (value >= 0xd800 && value <= 0xdfff) continue;
    std::string text;
    AppendCodePoint(text, value);
    text += "\x80";
    const CodePoint read = FirstCodePoint(text);
    ASSERT_EQ(read.value, value);
    ASSERT_EQ(read.length, text.size() - 1);
  }
}

TEST(Utf8, TakesWhatIsNoneAsOneByte) {
  const std::vector<std::string> wrong = {
      "\x80",              // continues nothing
      "\xc0\x80",          // overlong
      "\xc1\xbf",          // overlong
      "\xe0\x9f\xbf",      // overlong
      "\xf0\x8f\xbf\xbf",  // overlong
      "\xed\xa0\x80",      // a surrogate
      "\xf4\x90\x80\x80",  // beyond the last
      "\xf5\x80\x80\x80",
      "\xff",
      "\xc3",  // ends too early
      "\xe4\xb8",
      "\xf0\x9f\x98",
      "\xe4\x41\x41",
  };
  for (const std::string& text : wrong) {
    EXPECT_EQ(FirstCodePoint(text).value, kNotUtf8);
    EXPECT_EQ(FirstCodePoint(text).length, 1);
  }
}

TEST(Utf8, FindsTheFirstWrongByteWhereverItStands) {
  EXPECT_EQ(FindNotUtf8(""), std::string_view::npos);
  EXPECT_EQ(FindNotUtf8("plain, \u00fcber, \u4e2d\u6587 and \U0001f600, all fine"),
            std::string_view::npos);
  for (size_t at = 0; at < 40; ++at) {
    std::string text(40, 'a');
    text[at] = '\xff';
    EXPECT_EQ(FindNotUtf8(text), at);
  }
  EXPECT_EQ(FindNotUtf8("12345678\u4e2d\xe4\xb8"s), 11);
}

}  // namespace
}  // namespace fathom
