#include "base/docs_links.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(PageName, IsTheFilesNameWithoutItsEnding) {
  EXPECT_EQ(PageName("runbooks/no-events.md"), "no-events");
  EXPECT_EQ(PageName("security.md"), "security");
}

TEST(PageName, IsTheFoldersForAnIndex) {
  EXPECT_EQ(PageName("runbooks/README.md"), "runbooks");
  EXPECT_EQ(PageName("README.md"), "README");
}

TEST(DocsLinks, NameTheCommandThatPrintsThePageWithoutAUrl) {
  EXPECT_EQ(DocsLinks().To("runbooks/no-events.md"), "fathom docs no-events");
  EXPECT_EQ(DocsLinks().To("security.md"), "fathom docs security");
}

TEST(DocsLinks, AreBelowTheUrl) {
  for (const char* url : {"https://wiki/fathom", "https://wiki/fathom/"}) {
    EXPECT_EQ(DocsLinks(url).To("runbooks/no-events.md"),
              "https://wiki/fathom/runbooks/no-events.md");
  }
}

TEST(DocsLinks, AreEmptyForNoPage) {
  EXPECT_EQ(DocsLinks().To(""), "");
  EXPECT_EQ(DocsLinks("https://wiki").To(""), "");
}

}  // namespace
}  // namespace fathom
