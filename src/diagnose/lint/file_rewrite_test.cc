#include "diagnose/lint/file_rewrite.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

class FileRewriteTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("fathom_rewrite_") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = (folder_ / "x.yaml").string();
    std::ofstream(path_) << "old";
  }
  void TearDown() override { fs::remove_all(folder_); }

  size_t FilesInFolder() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(FileRewriteTest, KeepsTheModeAndLeavesNothingElseBehind) {
  ASSERT_EQ(::chmod(path_.c_str(), 0751), 0);
  ASSERT_TRUE(RewriteFile(path_, "old", "new"));
  EXPECT_EQ(*ReadFile(path_), "new");
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0751u);
  EXPECT_EQ(FilesInFolder(), 1);
}

TEST_F(FileRewriteTest, RewritesTheFileThatASymbolicLinkLeadsTo) {
  const std::string link = (folder_ / "link.yaml").string();
  fs::create_symlink("x.yaml", link);
  ASSERT_TRUE(RewriteFile(link, "old", "new"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(*ReadFile(path_), "new");
}

TEST_F(FileRewriteTest, LeavesAloneAFileThatHasChangedMeanwhile) {
  EXPECT_FALSE(RewriteFile(path_, "older", "new"));
  EXPECT_EQ(*ReadFile(path_), "old");
  EXPECT_EQ(FilesInFolder(), 1);
}

TEST_F(FileRewriteTest, RefusesWhatIsNoFile) {
  EXPECT_FALSE(RewriteFile(folder_.string(), "", "new"));
  EXPECT_FALSE(RewriteFile((folder_ / "none").string(), "", "new"));
}

}  // namespace
}  // namespace fathom
