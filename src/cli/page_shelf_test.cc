#include "cli/page_shelf.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

PageShelf Shelf() {
  return PageShelf({{"README", "README.md"},
                    {"runbooks", "runbooks/README.md"},
                    {"no-events", "runbooks/no-events.md"},
                    {"", "design/0008-block-sizes.md"},
                    {"", "../deploy/docker/Dockerfile"},
                    {"", "../deploy/compose/README.md"},
                    {"", "../deploy/compose/fathom.yaml"}});
}

TEST(PageShelf, FindsPagesByNameAndByLink) {
  const PageShelf shelf = Shelf();
  EXPECT_EQ(shelf.Find("no-events"), 2u);
  EXPECT_EQ(shelf.Find("no-events.md"), 2u);
  EXPECT_EQ(shelf.Find("../runbooks/README.md#before-anything-else"), 1u);
  EXPECT_EQ(shelf.Find("README.md"), 0u);
  EXPECT_EQ(shelf.Find("../design/0008-block-sizes.md"), 3u);
  EXPECT_EQ(shelf.Find("../../deploy/docker/Dockerfile"), 4u);
  EXPECT_EQ(shelf.Find("../deploy/compose/"), 5u);
}

TEST(PageShelf, FindsNothingThatIsNotThere) {
  const PageShelf shelf = Shelf();
  for (const char* wanted : {"", ".", "/", "../", "0008-block-sizes", "vents.md", "nowhere.md"}) {
    EXPECT_EQ(shelf.Find(wanted), std::nullopt) << wanted;
  }
}

TEST(PageShelf, FindsARenamedPageByNameAndByLink) {
  constexpr Renamed kRows[] = {{"silent-events", "no-events", "0.1.0"}};
  const PageShelf shelf({{"README", "README.md"}, {"no-events", "runbooks/no-events.md"}}, kRows);
  for (const char* wanted :
       {"silent-events", "silent-events.md", "../runbooks/silent-events.md#x"}) {
    EXPECT_EQ(shelf.Find(wanted), 1u) << wanted;
    ASSERT_NE(shelf.RenamingOf(wanted), nullptr) << wanted;
    EXPECT_EQ(shelf.RenamingOf(wanted)->now, "no-events");
  }
  EXPECT_EQ(shelf.RenamingOf("no-events"), nullptr);
  EXPECT_EQ(Shelf().Find("silent-events"), std::nullopt);
}

TEST(PageShelf, ListsFolders) {
  const std::vector<std::string_view> files = {
      "deploy/docker/Dockerfile", "deploy/compose/README.md", "deploy/compose/fathom.yaml"};
  EXPECT_EQ(Shelf().FolderAt("../deploy/"), files);
  EXPECT_EQ(Shelf().FolderAt("deploy"), files);
  EXPECT_TRUE(Shelf().FolderAt("../dep").empty());
  EXPECT_TRUE(Shelf().FolderAt("").empty());
}

TEST(WithLinksBelow, MakesUrlsOfLinksThatNeedTheRepository) {
  EXPECT_EQ(WithLinksBelow("https://wiki/fathom/docs/", "runbooks/a.md",
                           "[b](b.md#x) [c](../lint.md)\n[d](../../deploy/x/) [e](#f) "
                           "[g](https://h/i)\n```\n[j](k.md)\n```\n"),
            "[b](https://wiki/fathom/docs/runbooks/b.md#x) [c](https://wiki/fathom/docs/lint.md)\n"
            "[d](https://wiki/fathom/deploy/x/) [e](#f) [g](https://h/i)\n```\n[j](k.md)\n```\n");
  EXPECT_EQ(WithLinksBelow("https://wiki", "a.md", "[x](../deploy/y) ](z"),
            "[x](https://wiki/../deploy/y) ](https://wiki/z");
}

}  // namespace
}  // namespace fathom
