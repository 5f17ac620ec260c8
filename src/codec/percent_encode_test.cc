#include "codec/percent_encode.h"

#include <gtest/gtest.h>

#include "codec/url.h"

namespace fathom {
namespace {

TEST(PercentEncode, LeavesWhatIsPlainInAnyPartOfAUrl) {
  EXPECT_EQ(PercentEncode("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(PercentEncode("app in (a,b)&x=1/\n\xff"), "app%20in%20%28a%2Cb%29%26x%3D1%2F%0A%FF");
  EXPECT_EQ(PercentDecode(PercentEncode("http://h:1/a?b=%41")), "http://h:1/a?b=%41");
}

}  // namespace
}  // namespace fathom
