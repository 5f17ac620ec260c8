#include "cli/renamed_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "base/version.h"

namespace fathom {
namespace {

// A row that stays longer than was announced is a name that never goes.
TEST(RenamedNames, AreNotOlderThanOneRelease) {
  for (const RenamedName& name : AllRenamedNames()) {
    EXPECT_TRUE(KeepsFormerName(name.release, kVersion))
        << "the " << name.what << " " << name.former << " was renamed in " << name.release
        << ": this is " << kVersion << "; remove its row, or correct the release";
  }
}

TEST(RenamedNames, AreUnambiguous) {
  std::set<std::pair<std::string_view, std::string>> seen;
  for (const RenamedName& name : AllRenamedNames()) {
    EXPECT_NE(name.former, name.now);
    EXPECT_TRUE(seen.insert({name.what, name.former}).second) << name.former;
  }
}

TEST(RenamedNames, IncludeThoseOfMetricsAndCodes) {
  std::set<std::string> former;
  for (const RenamedName& name : AllRenamedNames()) former.insert(name.former);
  EXPECT_THAT(former, testing::IsSupersetOf({"kv_router_feed_ghosts", "bad_routing_wish"}));
}

TEST(RenamedNamesPage, HasARowPerName) {
  const RenamedName names[] = {{"option", "--old", "--new", "0.3.0"}};
  EXPECT_THAT(RenamedNamesPage(names),
              testing::HasSubstr("|---|---|---|---|---|\n"
                                 "| option | `--old` | `--new` | 0.3.0 | 0.4.0 |\n"));
}

TEST(RenamedNamesPage, IsWhatTheDocsSay) {
  std::ifstream file("docs/renamed.md");
  ASSERT_TRUE(file.good()) << "docs/renamed.md is missing; run ./dev docs";
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(written == RenamedNamesPage(AllRenamedNames()))
      << "docs/renamed.md differs from the tables of renamed names; run ./dev docs";
}

}  // namespace
}  // namespace fathom
