#include "io/kube/kube_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/kube_api.h"
#include "testing/kube_follow_rig.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

using End = KubeApi::End;

TEST(KubeFollowerTest, TellsTheListAndThenWhatChanges) {
  KubeApi api;
  api.Put("a", R"("weight":1)");
  api.Put("b", R"("weight":2)");
  KubeFollowRig rig(api.url());
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("listed"));
  EXPECT_THAT(rig.recorder.lines(), ElementsAre("object a", "object b", "listed"));
  api.Put("b", R"("weight":3)");
  api.Delete("a");
  api.Put("c", R"("weight":4)");
  ASSERT_TRUE(rig.recorder.WaitFor("object c"));
  EXPECT_THAT(rig.recorder.lines(),
              ElementsAre("object a", "object b", "listed", "object b", "gone a", "object c"));
  EXPECT_THAT(rig.recorder.picture()["b"], HasSubstr(R"("weight":3)"));
  EXPECT_THAT(api.requests()[0],
              StartsWith("/apis/discovery.k8s.io/v1/namespaces/ml/endpointslices?limit=500"));
  EXPECT_THAT(api.requests()[1], HasSubstr("allowWatchBookmarks=true"));
}

TEST(KubeFollowerTest, AsksWithSelectors) {
  KubeApi api;
  KubeFollowRig rig(KubeFollowRig::AccessTo(api.url()), {.resource = {"", "v1", "pods", "Pod"},
                                                         .network_namespace = "other",
                                                         .label_selector = "app in (a, b)",
                                                         .field_selector = "status.phase=Running"});
  rig.Start();
  ASSERT_TRUE(Becomes([&] { return api.watches() == 1; }));
  for (const std::string& target : api.requests()) {
    EXPECT_THAT(target, StartsWith("/api/v1/namespaces/other/pods?"));
    EXPECT_THAT(target, HasSubstr("&labelSelector=app%20in%20%28a%2C%20b%29"));
    EXPECT_THAT(target, HasSubstr("&fieldSelector=status.phase%3DRunning"));
  }
}

TEST(KubeFollowerTest, AWatchIsResumedWithoutAList) {
  for (const End how : {End::kOrderly, End::kCut, End::kHalfLine, End::kHalfEvent}) {
    KubeApi api;
    api.Put("a", R"("weight":1)");
    KubeFollowRig rig(api.url());
    rig.Start();
    ASSERT_TRUE(Becomes([&] { return api.open_watches() == 1; }));
    api.Put("b", R"("weight":1)");
    ASSERT_TRUE(rig.recorder.WaitFor("object b"));
    const std::string last = api.version();
    api.EndWatches(how);
    api.Put("c", R"("weight":1)");
    ASSERT_TRUE(rig.recorder.WaitFor("object c"));
    EXPECT_EQ(api.lists(), 1u);
    EXPECT_EQ(api.watched_from(), last);
    EXPECT_EQ(rig.recorder.Count("object a"), 1u);
    EXPECT_EQ(rig.recorder.Count("gone a"), 0u);
  }
}

TEST(KubeFollowerTest, ABookmarkIsWhereAWatchIsResumed) {
  KubeApi api;
  KubeFollowRig rig(api.url());
  rig.Start();
  ASSERT_TRUE(Becomes([&] { return api.open_watches() == 1; }));
  api.Bookmark();
  // A version is opaque, so that it has moved shows in where the next watch begins alone.
  const std::string marked = api.version();
  for (int i = 0; i < 1000 && api.watched_from() != marked; ++i) {
    api.EndWatches(End::kOrderly);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(api.watched_from(), marked);
  EXPECT_EQ(api.lists(), 1u);
  EXPECT_THAT(rig.recorder.lines(), ElementsAre("listed"));
}

TEST(KubeFollowerTest, AfterA410OnlyWhatDiffersIsTold) {
  for (const bool as_status : {true, false}) {
    KubeApi api;
    for (const char* name : {"same", "changed", "deleted"}) api.Put(name, R"("weight":1)");
    KubeFollowRig rig(api.url());
    rig.Start();
    ASSERT_TRUE(Becomes([&] { return api.open_watches() == 1; }));
    if (as_status) {
      api.AnswerWith(410, "content-type: application/json\r\n", R"({"code":410})");
      api.EndWatches(End::kOrderly);
      ASSERT_TRUE(Becomes([&] { return api.lists() == 2; }));
      ASSERT_TRUE(Becomes([&] { return api.open_watches() == 1; }));
    }
    // These are not told by a watch: the version that it would begin from is gone.
    api.EndWatches(End::kCut);
    api.Answer([&](RawSocket&, const std::string&) {
      api.Put("changed", R"("weight":2)");
      api.Put("same", R"("weight":1)");  // another version, the same content
      api.Delete("deleted");
      api.Put("new", R"("weight":1)");
      api.Compact();
    });
    ASSERT_TRUE(rig.recorder.WaitFor("object new"));
    ASSERT_TRUE(rig.recorder.WaitFor("gone deleted"));
    ASSERT_TRUE(rig.recorder.WaitFor("listed", as_status ? 3 : 2));
    EXPECT_EQ(rig.recorder.Count("object same"), 1u);
    EXPECT_EQ(rig.recorder.Count("object changed"), 2u);
    EXPECT_EQ(rig.recorder.Count("gone deleted"), 1u);
    EXPECT_EQ(rig.recorder.Count("gone same") + rig.recorder.Count("gone changed"), 0u);
    EXPECT_EQ(rig.recorder.Count("trouble 410"), 0u);
  }
}

TEST(KubeFollowerTest, ReadsPagesAndStartsOverWhereOneIsGone) {
  KubeApi api;
  for (int i = 0; i < 7; ++i) api.Put("o" + std::to_string(i), R"("weight":1)");
  KubeFollowerOptions options = QuickOptions();
  options.page = 2;
  KubeFollowRig rig(api.url(), options);
  // The second page never comes: the first one's version is compacted before.
  bool compacted = false;
  rig.recorder.on_line = [&](const std::string& line) {
    if (line != "object o1" || std::exchange(compacted, true)) return;
    api.Put("o0", R"("weight":2)");
    api.Compact();
  };
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("listed"));
  EXPECT_EQ(api.lists(), 2u + 4u);
  EXPECT_EQ(rig.recorder.picture().size(), 7u);
  EXPECT_EQ(rig.recorder.Count("object o0"), 2u);
  EXPECT_EQ(rig.recorder.Count("object o1"), 1u);
  EXPECT_EQ(rig.recorder.Count("listed"), 1u);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(rig.recorder.Count("gone o" + std::to_string(i)), 0u);
}

TEST(KubeFollowerTest, AnObjectThatIsMadeAnewIsOneChange) {
  KubeApi api;
  api.Put("a", R"("weight":1)", "first");
  KubeFollowRig rig(api.url());
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("listed"));
  api.Put("a", R"("weight":1)", "second");
  ASSERT_TRUE(rig.recorder.WaitFor("object a", 2));
  EXPECT_EQ(rig.recorder.Count("gone a"), 0u);
}

TEST(KubeFollowerTest, AnUpdateThatChangesNothingIsNotTold) {
  KubeApi api;
  api.Put("a", R"("spec":{"x":1,"y":[1,2]})");
  KubeFollowRig rig(api.url());
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("listed"));
  api.Put("a", R"("kind":"EndpointSlice","spec":{"y":[1,2],"x":1})");
  api.Put("b", R"("spec":1)");
  ASSERT_TRUE(rig.recorder.WaitFor("object b"));
  EXPECT_EQ(rig.recorder.Count("object a"), 1u);
  api.Put("a", R"("spec":{"x":1,"y":[2,1]})");
  EXPECT_TRUE(rig.recorder.WaitFor("object a", 2));
}

TEST(KubeFollowerTest, AServerThatEndsEveryWatchAtOnceIsNotAskedInACircle) {
  KubeApi api;
  KubeFollowerOptions options = QuickOptions();
  options.first_pause = std::chrono::milliseconds(50);
  options.longest_pause = std::chrono::milliseconds(200);
  constexpr int kEnded = 4;
  api.Answer([&](RawSocket& client, const std::string&) {
    const std::string body = R"({"metadata":{"resourceVersion":"1"},"items":[]})";
    client.Send(
        fmt::format("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                    "content-length: {}\r\n\r\n{}",
                    body.size(), body));
  });
  for (int i = 0; i < kEnded; ++i) api.AnswerWith(200, "content-type: application/json\r\n", "");
  KubeFollowRig rig(api.url(), options);
  const auto began = std::chrono::steady_clock::now();
  rig.Start();
  ASSERT_TRUE(Becomes([&] { return api.watches() == kEnded + 1; }));
  // At least half of 50, 100, 200 and 200 ms.
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(275));
  EXPECT_THAT(rig.recorder.lines(), ElementsAre("listed"));
}

}  // namespace
}  // namespace fathom
