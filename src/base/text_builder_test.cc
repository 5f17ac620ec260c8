#include "base/text_builder.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

TEST(TextBuilder, JoinsPiecesInOrder) {
  TextBuilder out;
  EXPECT_EQ(out.text(), "");
  out.Add("content-length: ", std::string("12"), "\r\n");
  out.Add("", std::string_view("x"));
  EXPECT_EQ(out.text(), "content-length: 12\r\nx");
  out.Clear();
  EXPECT_EQ(out.text(), "");
}

TEST(TextBuilder, KeepsWhatItHasWhenItGrows) {
  TextBuilder out;
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string number = std::to_string(i);
    out.Add(number, ",");
    expected += number + ",";
  }
  EXPECT_EQ(out.text(), expected);
}

}  // namespace
}  // namespace fathom
