// What a real API server has sent, record by record, as a follower takes it (tests/data/kube).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"
#include "testing/kube_api.h"
#include "testing/kube_follow_rig.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

KubeApi::Script Replay(const std::string& name) {
  std::vector<std::string> records;
  const std::string text = *ReadFile("tests/data/kube/" + name + ".jsonl");
  for (const std::string_view line : SplitAny(text, "\n")) {
    if (!line.empty()) records.push_back(*Json::Parse(line)->Find("data")->string());
  }
  return [records](RawSocket& client, const std::string&) {
    for (const std::string& record : records) {
      client.Send(record);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that it comes by itself
    }
  };
}

TEST(KubeCaptureTest, AListAndItsWatch) {
  KubeApi api;
  api.Answer(Replay("slices-list"));
  api.Answer(Replay("slices-watch"));
  KubeFollowRig rig(api.url());
  rig.Start();
  ASSERT_TRUE(Becomes([&] { return api.watches() == 2; }));
  // The watch begins with a vllm-b that was made anew; it is emptied, then deleted.
  const std::vector<std::string> told = rig.recorder.lines();
  const size_t listed = static_cast<size_t>(std::ranges::find(told, "listed") - told.begin());
  const std::vector<std::string> watched(told.begin() + static_cast<ptrdiff_t>(listed) + 1,
                                         told.end());
  EXPECT_EQ(listed, 4u);
  EXPECT_THAT(watched,
              ElementsAre("object vllm-b", "object vllm-b", "object vllm-b", "gone vllm-a",
                          "object vllm-a", "gone vllm-b", "object vllm-a", "object vllm-a"));
  EXPECT_EQ(api.watched_from(), "217");
}

TEST(KubeCaptureTest, BookmarksMoveTheVersion) {
  KubeApi api;
  api.Answer(Replay("slices-list"));
  api.Answer(Replay("watch-bookmark-short"));
  KubeFollowRig rig(api.url());
  rig.Start();
  ASSERT_TRUE(Becomes([&] { return api.watches() == 2; }));
  EXPECT_EQ(api.watched_from(), "231");
}

TEST(KubeCaptureTest, AVersionThatIsGone) {
  KubeApi api;
  api.Answer(Replay("gone-list-continue"));
  api.Answer(Replay("slices-list"));
  api.Answer(Replay("gone-watch"));
  api.Answer(Replay("slices-list"));
  KubeFollowRig rig(api.url());
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("listed", 2));
  EXPECT_EQ(rig.recorder.lines().size(), 4u + 2u);
  EXPECT_EQ(api.lists(), 3u);
}

TEST(KubeCaptureTest, ARightThatIsMissing) {
  KubeApi api;
  for (int i = 0; i < 2; ++i) api.Answer(Replay("denied-restricted-watch"));
  KubeFollowRig rig(api.url());
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("trouble 403"));
  EXPECT_THAT(rig.recorder.words(), HasSubstr("Role with verb list on endpointslices"));
}

TEST(KubeCaptureTest, ObjectsThatTheClusterDoesNotDefine) {
  KubeApi api;
  api.Answer(Replay("pools-unknown"));
  KubeFollowRig rig(api.url());
  rig.Start();
  EXPECT_TRUE(rig.recorder.WaitFor("trouble 404"));
}

}  // namespace
}  // namespace fathom
