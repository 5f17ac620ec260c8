#include "base/file.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(ReadFile, ReadsAllOfAFileAndSaysWhyItCannot) {
  const std::string here = "src/base";
  const auto text = ReadFile(here + "/file.h");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("Reads a whole file."), std::string::npos);
  EXPECT_EQ(ReadFile(here + "/gone").error().what, "No such file or directory");
  EXPECT_EQ(ReadFile(here).error().what, "Is a directory");
}

TEST(ReadFile, RefusesAFileWithoutEnd) {
  const auto text = ReadFile("/dev/zero");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().what, "has more than 512 MiB");
}

}  // namespace
}  // namespace fathom
