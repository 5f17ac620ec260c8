// After Stop() a follower is silent, whatever it was doing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "io/kube/kube_follower.h"
#include "testing/kube_api.h"
#include "testing/kube_follow_rig.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Nothing more is said, also not by what was under way.
void ExpectSilence(KubeApi& api, KubeFollowRig& rig) {
  const std::vector<std::string> said = rig.recorder.lines();
  rig.Settle();
  const size_t asked = api.requests().size();
  api.Put("late", R"("weight":9)");
  api.EndWatches(KubeApi::End::kOrderly);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // several of its pauses
  rig.Settle();
  EXPECT_EQ(rig.recorder.lines(), said);
  EXPECT_EQ(api.requests().size(), asked);
}

TEST(KubeFollowerStopTest, BeforeItHasBegun) {
  KubeApi api;
  KubeFollowRig rig(api.url());
  rig.Stop();
  ExpectSilence(api, rig);
}

TEST(KubeFollowerStopTest, WhileItWaitsForAnAnswer) {
  // Nothing at all, a part of the head, a part of the body.
  for (const char* part :
       {"", "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"}) {
    KubeApi api;
    std::atomic<bool> reached = false;
    std::atomic<bool> ended = false;
    api.Answer([&](RawSocket& client, const std::string&) {
      client.Send(part);
      reached = true;
      client.ReadToEnd();       // until the follower hangs up
      ended = !client.reset();  // or the test has waited for too long
    });
    KubeFollowRig rig(api.url());
    rig.Start();
    ASSERT_TRUE(Becomes([&] { return reached.load(); }));
    rig.Stop();
    EXPECT_TRUE(Becomes([&] { return ended.load(); }));
    ExpectSilence(api, rig);
    EXPECT_THAT(rig.recorder.lines(), IsEmpty());
  }
}

TEST(KubeFollowerStopTest, WhileItWatches) {
  KubeApi api;
  KubeFollowRig rig(api.url());
  rig.Start();
  ASSERT_TRUE(Becomes([&] { return api.open_watches() == 1; }));
  rig.Stop();
  ExpectSilence(api, rig);
}

TEST(KubeFollowerStopTest, WhileItPauses) {
  KubeApi api;
  api.AnswerWith(503, "", "");
  KubeFollowerOptions options = QuickOptions();
  options.first_pause = options.longest_pause = std::chrono::hours(1);
  KubeFollowRig rig(api.url(), options);
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("trouble 503"));
  rig.Settle();
  rig.Stop();
  ExpectSilence(api, rig);
}

TEST(KubeFollowerStopTest, InsideOfEachCall) {
  for (const std::string line :
       {"object a", "listed", "object c", "gone a", "gone d", "trouble 503", "recovered"}) {
    KubeApi api;
    for (const char* name : {"a", "b", "d"}) api.Put(name, R"("weight":1)");
    KubeFollowRig rig(api.url());
    rig.recorder.on_line = [&](const std::string& said) {
      if (said == line) rig.follower().Stop();
    };
    rig.Start();
    // All that can be told, one after the other; the list's own "gone" comes last.
    const auto reached = [&] { return rig.recorder.Count(line) > 0; };
    ASSERT_TRUE(Becomes([&] { return reached() || api.open_watches() == 1; }));
    if (!reached()) {
      api.Put("c", R"("weight":1)");
      api.Delete("a");
      ASSERT_TRUE(Becomes([&] { return reached() || rig.recorder.Count("gone a") > 0; }));
    }
    if (!reached()) {
      api.AnswerWith(503, "", "");
      api.Answer([&](RawSocket& client, const std::string&) {
        client.Send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
        ASSERT_TRUE(Becomes([&] { return reached() || rig.recorder.Count("recovered") > 0; }));
        api.Delete("d");
        api.Compact();
      });
      api.EndWatches(KubeApi::End::kOrderly);
    }
    ASSERT_TRUE(rig.recorder.WaitFor(line)) << line;
    ExpectSilence(api, rig);
    EXPECT_EQ(rig.recorder.lines().back(), line);
  }
}

}  // namespace
}  // namespace fathom
