#include "router/serve/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KeyFileTest : public testing::Test {
 protected:
  KeyFileTest() {
    char name[] = "/tmp/fathom-keys-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ / "keys";
  }
  ~KeyFileTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) { std::ofstream(path_) << text; }
  // As a text editor or Kubernetes does: the name gets another file.
  void Replace(const std::string& text) {
    std::ofstream(folder_ / "new") << text;
    std::filesystem::rename(folder_ / "new", path_);
  }
  std::string Problem(Result<std::vector<std::string>> read) {
    return read ? "" : read.error().what;
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

TEST_F(KeyFileTest, ReadsAKeyPerLineBesideThoseFromElsewhere) {
  Write("# the team's\nalpha\r\n\n  beta  \n#gamma\n");
  KeyFile file("api-keys-file", {"flag"}, path_);
  EXPECT_TRUE(file.configured());
  EXPECT_THAT(*file.Read(), ElementsAre("flag", "alpha", "beta"));
}

TEST_F(KeyFileTest, HasOnlyTheKeysFromElsewhereWithoutAFile) {
  KeyFile file("api-keys-file", {"flag"}, "");
  EXPECT_TRUE(file.configured());
  EXPECT_THAT(*file.Read(), ElementsAre("flag"));
  EXPECT_FALSE(file.HasChanged());
  EXPECT_FALSE(KeyFile("api-keys-file", {}, "").configured());
}

TEST_F(KeyFileTest, NamesTheOptionAndTheFileInItsErrors) {
  KeyFile file("admin-key-file", {}, path_);
  EXPECT_THAT(Problem(file.Read()), HasSubstr("admin-key-file " + path_.string()));
  Write("# nothing\n");
  EXPECT_EQ(Problem(file.Read()), "admin-key-file " + path_.string() + " contains no key");
  Write(std::string(KeyFile::kMaxBytes + 1, 'x'));
  EXPECT_THAT(Problem(file.Read()), HasSubstr("more than"));
}

TEST_F(KeyFileTest, NoticesAnotherContentOnceItIsSettled) {
  Write("alpha\n");
  KeyFile file("api-keys-file", {}, path_);
  ASSERT_TRUE(file.Read());
  EXPECT_FALSE(file.HasChanged());
  EXPECT_FALSE(file.HasChanged());
  Replace("beta\n");
  EXPECT_FALSE(file.HasChanged()) << "it may still be written";
  EXPECT_TRUE(file.HasChanged());
  EXPECT_THAT(*file.Read(), ElementsAre("beta"));
  EXPECT_FALSE(file.HasChanged());
  Write("beta and more\n");
  EXPECT_FALSE(file.HasChanged());
  EXPECT_TRUE(file.HasChanged());
}

TEST_F(KeyFileTest, ReportsALostFileOnce) {
  Write("alpha\n");
  KeyFile file("api-keys-file", {}, path_);
  ASSERT_TRUE(file.Read());
  std::filesystem::remove(path_);
  EXPECT_FALSE(file.HasChanged());
  EXPECT_TRUE(file.HasChanged());
  EXPECT_FALSE(file.Read());
  EXPECT_FALSE(file.HasChanged());
  Write("alpha\n");
  EXPECT_FALSE(file.HasChanged());
  EXPECT_TRUE(file.HasChanged()) << "it is back";
}

TEST_F(KeyFileTest, ReadsAPipeOnlyAtTheStart) {
  Write("alpha\n");
  KeyFile file("api-keys-file", {}, path_);
  ASSERT_TRUE(file.Read());
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(Problem(file.Read()), HasSubstr("not a regular file")) << "and does not block";
}

}  // namespace
}  // namespace fathom
