#include "diagnose/doctor/waste_remedies.h"

#include <gmock/gmock.h>

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(WasteRemedies, FixWhatTheWasteIsFor) {
  const auto fixes =
      WasteRemedies({{"load", 2'000}, {"forgotten", 7'000}, {"lag", 500}, {"gone", 0}});
  ASSERT_THAT(fixes, SizeIs(2)) << "a twentieth is not noticeable";
  EXPECT_EQ(fixes[0].setting, "--index-max-bytes 8GiB");
  EXPECT_THAT(fixes[0].what, HasSubstr("74 % of the waste: forgotten"));
  EXPECT_THAT(fixes[1].what, HasSubstr("Add workers"));
}

TEST(WasteRemedies, NeverSendTheirReaderBackToTheDoctor) {
  for (const char* cause : {"doubted", "excluded", "lag", "mispredicted", "evicted", "gone",
                            "forgotten", "override", "load", "full", "of a later version"}) {
    const auto fixes = WasteRemedies({{cause, 100}});
    ASSERT_THAT(fixes, SizeIs(1)) << cause;
    EXPECT_FALSE(fixes[0].what.contains("fathom doctor")) << cause;
    EXPECT_FALSE(fixes[0].setting.contains("fathom doctor")) << cause;
  }
}

}  // namespace
}  // namespace fathom
