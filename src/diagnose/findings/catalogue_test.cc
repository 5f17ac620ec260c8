#include "diagnose/findings/catalogue.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace fathom {
namespace {

using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

TEST(Catalogue, HasEveryIdAtItsPlace) {
  ASSERT_EQ(Catalogue().size(), kFindingIds);
  for (size_t i = 0; i < Catalogue().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(Catalogue()[i].id), i) << Catalogue()[i].name;
  }
}

TEST(Catalogue, HasNamesThatDifferAndTitlesThatEndWithoutAPoint) {
  std::set<std::string_view> names;
  for (const FindingKind& kind : Catalogue()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_THAT(std::string(kind.name), MatchesRegex("[a-z]+(-[a-z]+)*"));
    EXPECT_THAT(kind.title, Not(IsEmpty()));
    EXPECT_FALSE(kind.title.ends_with('.')) << kind.title;
  }
}

TEST(Catalogue, FindsItsOwnNamesAndNoOthers) {
  for (const FindingKind& kind : Catalogue()) EXPECT_EQ(FindingNamed(kind.name), kind.id);
  EXPECT_EQ(FindingNamed("block_size_mismatch"), std::nullopt);
  EXPECT_EQ(FindingNamed(""), std::nullopt);
}

TEST(Catalogue, NamesAPageAfterTheFinding) {
  EXPECT_EQ(PageOf(FindingId::kNoEvents), "runbooks/no-events.md");
}

}  // namespace
}  // namespace fathom
