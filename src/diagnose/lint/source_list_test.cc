#include "diagnose/lint/source_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace fathom {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class SourceListTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("fathom_sources_") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Make(const std::string& name) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << name;
    return path.string();
  }

  static std::vector<std::string> TextsOf(const std::vector<std::string>& names) {
    std::vector<std::string> texts;
    for (const SourceFile& file : ReadSources(names).files) texts.push_back(file.text);
    return texts;
  }

  fs::path folder_;
};

TEST_F(SourceListTest, TakesTheDeploymentFilesOfAFolderInOrder) {
  for (const char* name : {"b.yml", "a/z.yaml", "a/b.sh", "c.toml", "d.json", "e.md", "f.txt",
                           "g.cc", ".git/config.yaml"}) {
    Make(name);
  }
  EXPECT_THAT(TextsOf({folder_.string()}),
              ElementsAre("a/b.sh", "a/z.yaml", "b.yml", "c.toml", "d.json", "e.md"));
}

TEST_F(SourceListTest, ReadsAFileThatIsNamedWhateverItIsCalled) {
  EXPECT_THAT(TextsOf({Make("Procfile")}), ElementsAre("Procfile"));
}

TEST_F(SourceListTest, ReadsAFileOnce) {
  const std::string name = Make("a.yaml");
  EXPECT_EQ(ReadSources(std::vector{name, name}).files.size(), 1);
}

TEST_F(SourceListTest, DoesNotFollowLinksToFolders) {
  Make("a.yaml");
  fs::create_directory_symlink(folder_, folder_ / "loop");
  EXPECT_THAT(TextsOf({folder_.string()}), ElementsAre("a.yaml"));
}

TEST_F(SourceListTest, TellsAFileThatIsNotThere) {
  const std::string name = (folder_ / "none.yaml").string();
  const Sources sources = ReadSources(std::vector{name, Make("a.yaml")});
  EXPECT_EQ(sources.files.size(), 1);
  ASSERT_EQ(sources.unread.size(), 1);
  EXPECT_EQ(sources.unread[0].name, name);
}

}  // namespace
}  // namespace fathom
