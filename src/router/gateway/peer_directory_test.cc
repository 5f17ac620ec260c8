#include "router/gateway/peer_directory.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace fathom {
namespace {

constexpr TimePoint kNow{std::chrono::seconds(1000)};

class PeerDirectoryTest : public testing::Test {
 protected:
  std::string Find(std::string_view model, const PeerRoute* but = nullptr) {
    const auto found = peers_.Find(model, kNow, but);
    return found == nullptr ? "" : found->id;
  }
  std::set<std::string> FindOften(std::string_view model, TimePoint now = kNow) {
    std::set<std::string> found;
    for (int i = 0; i < 10; ++i) found.insert(peers_.Find(model, now)->id);
    return found;
  }

  PeerDirectory peers_;
};

TEST_F(PeerDirectoryTest, FindsTheReplicaOfAModel) {
  EXPECT_EQ(Find("qwen"), "");
  EXPECT_TRUE(
      peers_.Set({{"a", "http://a:1", {"qwen*"}}, {"b", "http://b:1/base", {"llama"}}}).empty());
  EXPECT_EQ(Find("qwen3"), "a");
  EXPECT_EQ(Find("llama"), "b");
  EXPECT_EQ(Find("phi"), "");
  const auto route = peers_.Find("llama", kNow);
  EXPECT_EQ(route->host_header, "b:1");
  EXPECT_EQ(route->endpoint.url.path, "/base");
  peers_.Set({});
  EXPECT_EQ(Find("llama"), "");
  EXPECT_EQ(route->id, "b") << "a request may still use it";
}

TEST_F(PeerDirectoryTest, TakesTurnsAmongSeveralAndLeavesOneOut) {
  peers_.Set({{"a", "http://a:1", {}}, {"b", "http://b:1", {"m"}}, {"c", "http://c:1", {"x"}}});
  EXPECT_EQ(FindOften("m"), (std::set<std::string>{"a", "b"}));
  const auto first = peers_.Find("m", kNow);
  EXPECT_NE(Find("m", first.get()), first->id);
  EXPECT_NE(Find("m", first.get()), "");
  EXPECT_EQ(Find("other", peers_.Find("other", kNow).get()), "") << "no second one";
}

TEST_F(PeerDirectoryTest, AsksOneLastThatHasJustFailed) {
  peers_.Set({{"a", "http://a:1", {}}, {"b", "http://b:1", {}}});
  const auto failed = peers_.Find("m", kNow);
  PeerDirectory::Failed(*failed, kNow);
  EXPECT_FALSE(FindOften("m").contains(failed->id));
  peers_.Set({{"a", "http://a:1", {}}, {"b", "http://b:1", {}}, {"c", "http://c:1", {"x"}}});
  EXPECT_FALSE(FindOften("m").contains(failed->id)) << "those that have not changed are kept";
  EXPECT_EQ(FindOften("m", kNow + PeerDirectory::kAskLast).size(), 2u);
  PeerDirectory::Failed(*peers_.Find("m", kNow), kNow);
  EXPECT_NE(Find("m"), "") << "all have failed: any is better than none";
}

TEST_F(PeerDirectoryTest, AsksOneThatDrainsOnlyIfThereIsNoOther) {
  peers_.Set({{"a", "http://a:1", {}, true}, {"b", "http://b:1", {}}});
  EXPECT_FALSE(FindOften("m").contains("a"));
  peers_.Set({{"a", "http://a:1", {}, true}});
  EXPECT_EQ(Find("m"), "a") << "its answer says that the request can be sent again";
}

TEST_F(PeerDirectoryTest, KnowsThoseWithoutAUrl) {
  peers_.Set({{"a", "", {"qwen"}}});
  EXPECT_EQ(Find("qwen"), "");
  EXPECT_EQ(peers_.WithoutUrl("qwen"), "a");
  EXPECT_EQ(peers_.WithoutUrl("llama"), "");
}

TEST_F(PeerDirectoryTest, LeavesOutThoseThatCannotBeUsed) {
  const auto errors = peers_.Set({{"a", "ftp://a", {}},
                                  {"b", "http://b:1", std::vector<std::string>(1000, "x")},
                                  {"c", "http://c:1", {}}});
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_NE(errors[0].what.find("replica a"), std::string::npos) << errors[0].what;
  EXPECT_EQ(FindOften("m"), std::set<std::string>{"c"});
}

TEST_F(PeerDirectoryTest, IsBounded) {
  std::vector<PeerReplica> many;
  for (size_t i = 0; i <= PeerDirectory::kMost; ++i) {
    many.push_back({std::to_string(i), "http://a:1", {std::to_string(i)}});
  }
  peers_.Set(std::move(many));
  EXPECT_EQ(Find(std::to_string(PeerDirectory::kMost - 1)),
            std::to_string(PeerDirectory::kMost - 1));
  EXPECT_EQ(Find(std::to_string(PeerDirectory::kMost)), "");
}

}  // namespace
}  // namespace fathom
