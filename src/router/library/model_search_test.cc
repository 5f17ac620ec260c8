#include "router/library/model_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "router/library/hub_cache.h"
#include "testing/model_fixture.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kFirst = "0123456789abcdef0123456789abcdef01234567";
constexpr std::string_view kSecond = "ffffffffffffffffffffffffffffffffffffffff";

class ModelSearchTest : public testing::Test {
 protected:
  ModelSearchTest() : top_(fs::path(testing::TempDir()) / "fathom-search") {
    fs::remove_all(top_);
    fs::create_directories(top_ / "cache");
    fs::create_directories(top_ / "root");
    fs::create_directories(top_ / "outside");
    top_ = fs::canonical(top_);
  }
  ~ModelSearchTest() override { fs::remove_all(top_); }

  std::string At(const std::string& path) const { return (top_ / path).string(); }

  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories((top_ / path).parent_path());
    std::ofstream(top_ / path) << text;
  }
  void MakeModel(const std::string& folder) const {
    const ModelFiles files = SmallFiles();
    Write(folder + "/tokenizer.json", files.tokenizer);
    Write(folder + "/tokenizer_config.json", files.tokenizer_config);
    Write(folder + "/chat_template.jinja", files.chat_template);
  }

  std::vector<std::string> Find(const std::vector<std::string>& names) const {
    std::vector<std::string> folders;
    for (const auto& place : Search().Find(names)) folders.push_back(place.folder);
    return folders;
  }
  ModelSearch Search() const { return ModelSearch({At("cache")}, {At("root")}); }

  fs::path top_;
};

TEST_F(ModelSearchTest, FindsASnapshotOfTheCache) {
  const HubCache cache(At("cache"));
  const HubRef ref{.name = "org/name"};
  const std::string commit(kFirst);
  const ModelFiles files = SmallFiles();
  EXPECT_FALSE(cache.Find(ref));
  ASSERT_TRUE(cache.Store(ref, commit, "tokenizer_config.json", "\"e1\"", files.tokenizer_config));
  EXPECT_THAT(Find({"org/name"}), IsEmpty()) << "not complete before its tokenizer";
  ASSERT_TRUE(cache.Store(ref, commit, "chat_template.jinja", "../x", files.chat_template));
  ASSERT_TRUE(cache.Store(ref, commit, "tokenizer.json", "W/\"e2\"", files.tokenizer));
  ASSERT_TRUE(cache.SetRef(ref, commit));
  const std::string snapshot = At("cache/models--org--name/snapshots/" + commit);
  EXPECT_THAT(Find({"org/name"}), ElementsAre(snapshot));
  EXPECT_EQ(cache.Find({"org/name", commit}), snapshot);
  EXPECT_FALSE(cache.Find({"org/name", "other"}));
  EXPECT_EQ(fs::read_symlink(snapshot + "/tokenizer.json"), "../../blobs/e2");
  EXPECT_FALSE(fs::is_symlink(snapshot + "/chat_template.jinja")) << "its ETag is no file name";
  const auto model = Search().Load(snapshot);
  ASSERT_TRUE(model) << model.error().what;
  EXPECT_TRUE((*model)->template_problem().empty());
  // Nothing is left of files that were being written.
  EXPECT_EQ(std::distance(fs::directory_iterator(snapshot), fs::directory_iterator()), 3);
}

TEST_F(ModelSearchTest, TakesTheOnlySnapshotWhereMainIsNotKnown) {
  MakeModel("cache/models--a--b/snapshots/" + std::string(kFirst));
  EXPECT_EQ(Find({"a/b"}).size(), 1u);
  MakeModel("cache/models--a--b/snapshots/" + std::string(kSecond));
  EXPECT_THAT(Find({"a/b"}), IsEmpty()) << "which one the engine uses is not known";
  Write("cache/models--a--b/refs/main", std::string(kSecond) + "\n");
  EXPECT_THAT(Find({"a/b"}), ElementsAre(HasSubstr(kSecond)));
  Write("cache/models--a--b/refs/main", "../../../../outside");
  EXPECT_THAT(Find({"a/b"}), IsEmpty());
}

TEST_F(ModelSearchTest, LooksBelowRoots) {
  MakeModel("root/org/name");
  MakeModel("root/other");
  MakeModel("root/models--x--y/snapshots/" + std::string(kFirst));
  EXPECT_THAT(Find({"org/name"}), ElementsAre(At("root/org/name")));
  EXPECT_THAT(Find({"any/other"}), ElementsAre(At("root/other")));
  EXPECT_THAT(Find({"other"}), ElementsAre(At("root/other")));
  EXPECT_EQ(Find({"x/y"}).size(), 1u);
  EXPECT_THAT(Find({"none", "org/name", "other"}),
              ElementsAre(At("root/org/name"), At("root/other")));
  EXPECT_EQ(Search().Find({"other"}).front().found_by, "--model-root");
}

TEST_F(ModelSearchTest, FollowsAReportedPathOnlyBelowARoot) {
  MakeModel("root/deep/model");
  MakeModel("outside/model");
  MakeModel("root-2/model");
  EXPECT_THAT(Find({At("root/deep/model")}), ElementsAre(At("root/deep/model")));
  EXPECT_THAT(Find({At("root/deep/../deep/model/")}), ElementsAre(At("root/deep/model")));
  for (const std::string& path :
       {At("outside/model"), At("root/../outside/model"), At("root-2/model"), At("root/none"),
        std::string("/etc"), std::string("../outside/model"),
        std::string("/") + std::string(5000, 'a'), At("root/deep/model") + std::string("\0x", 2)}) {
    EXPECT_THAT(Find({path}), IsEmpty()) << path;
  }
}

TEST_F(ModelSearchTest, DoesNotFollowLinksOutOfARoot) {
  MakeModel("outside/model");
  MakeModel("root/real");
  fs::create_symlink(At("outside/model"), At("root/linked"));
  fs::create_symlink(At("root/real"), At("root/inside"));
  EXPECT_THAT(Find({"linked"}), IsEmpty());
  EXPECT_THAT(Find({At("root/linked")}), IsEmpty());
  EXPECT_THAT(Find({"inside"}), ElementsAre(At("root/real")));
  // One file of a folder.
  MakeModel("root/partly");
  fs::remove(At("root/partly/tokenizer_config.json"));
  fs::create_symlink(At("outside/model/tokenizer_config.json"),
                     At("root/partly/tokenizer_config.json"));
  const auto model = Search().Load(At("root/partly"));
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().what, HasSubstr("tokenizer_config.json: a link to"));
  EXPECT_THAT(model.error().what, HasSubstr("--model-root"));
}

TEST_F(ModelSearchTest, ReadsOnlyRegularFilesOfBoundedSize) {
  MakeModel("root/pipe");
  fs::remove(At("root/pipe/chat_template.jinja"));
  ASSERT_EQ(mkfifo(At("root/pipe/chat_template.jinja").c_str(), 0600), 0);
  const auto pipe = Search().Load(At("root/pipe"));
  ASSERT_FALSE(pipe);
  EXPECT_THAT(pipe.error().what, HasSubstr("is not a regular file"));
  MakeModel("root/large");
  fs::resize_file(At("root/large/tokenizer_config.json"), ModelSearch::kMostBytes + 1);
  const auto large = Search().Load(At("root/large"));
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().what, HasSubstr("has more than 16 MiB"));
}

}  // namespace
}  // namespace fathom
