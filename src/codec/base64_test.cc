#include "codec/base64.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace fathom {
namespace {

TEST(Base64, IsThatOfTheStandard) {
  EXPECT_EQ(EncodeBase64(""), "");
  EXPECT_EQ(EncodeBase64("f"), "Zg==");
  EXPECT_EQ(EncodeBase64("fo"), "Zm8=");
  EXPECT_EQ(EncodeBase64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(DecodeBase64("Zm9vYg=="), "foob");
  EXPECT_EQ(DecodeBase64("+/8="), "\xfb\xff");
}

TEST(Base64, PassesOverLineEndsAndMissingPadding) {
  EXPECT_EQ(DecodeBase64("Zm9v\r\nYmFy\n"), "foobar");
  EXPECT_EQ(DecodeBase64("Zm8"), "fo");
  EXPECT_EQ(DecodeBase64(" "), "");
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Zm9v!", "Zg=x", "Zg===", "====", "Zm9=v", "Zm9vY"}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
}

TEST(Base64, BringsBackWhatWasEncoded) {
  Random random(1);
  for (size_t size = 0; size < 200; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes);
  }
}

}  // namespace
}  // namespace fathom
