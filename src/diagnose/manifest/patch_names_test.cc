#include "diagnose/manifest/patch_names.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace fathom {
namespace {

using PatchNames = std::vector<std::pair<std::string, std::string>>;

// (folder, name) of each, from /home/ada.
PatchNames PatchNamesOf(const std::vector<std::string>& files) {
  std::vector<SourceFile> sources;
  for (const std::string& file : files) sources.push_back({file, ""});
  NameForPatch(sources, "/home/ada");
  PatchNames names;
  for (const SourceFile& source : sources) {
    names.emplace_back(source.patch_folder, source.patch_name);
  }
  return names;
}

TEST(NameForPatch, IsRelativeToTheCurrentFolderWhereAllFilesAreBelowIt) {
  EXPECT_EQ(PatchNamesOf({"a.yaml", "./k/../b.yaml", "/home/ada/fleet/c.yaml"}),
            PatchNames({{"", "a.yaml"}, {"", "b.yaml"}, {"", "fleet/c.yaml"}}));
}

TEST(NameForPatch, NamesTheDeepestFolderOtherwise) {
  EXPECT_EQ(PatchNamesOf({"/srv/fleet/a.yaml"}), PatchNames({{"/srv/fleet", "a.yaml"}}));
  EXPECT_EQ(PatchNamesOf({"/srv/fleet/x/a.yaml", "/srv/fleet/y/b.yaml"}),
            PatchNames({{"/srv/fleet", "x/a.yaml"}, {"/srv/fleet", "y/b.yaml"}}));
  EXPECT_EQ(PatchNamesOf({"../bob/a.yaml", "b.yaml"}),
            PatchNames({{"/home", "bob/a.yaml"}, {"/home", "ada/b.yaml"}}));
  EXPECT_EQ(PatchNamesOf({"/srv/a.yaml", "b.yaml"}),
            PatchNames({{"/", "srv/a.yaml"}, {"/", "home/ada/b.yaml"}}));
}

TEST(NameForPatch, LeavesWhatIsNoFile) {
  EXPECT_EQ(PatchNamesOf({"<stdin>", "kube:ml/Deployment/a"}), PatchNames({{"", ""}, {"", ""}}));
  EXPECT_EQ(PatchNamesOf({"<stdin>", "/srv/a.yaml"}), PatchNames({{"", ""}, {"/srv", "a.yaml"}}));
}

}  // namespace
}  // namespace fathom
