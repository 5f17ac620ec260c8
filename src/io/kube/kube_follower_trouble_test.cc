// What a follower says of an API server that does not do its part, and how it gets over it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/kube/kube_follower.h"
#include "testing/kube_api.h"
#include "testing/kube_follow_rig.h"

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kJsonType = "content-type: application/json\r\n";

// A server with one object, and a follower that watches it.
class KubeTroubleTest : public testing::Test {
 public:
  void Begin(const KubeFollowerOptions& options = QuickOptions()) {
    api.Put("a", R"("weight":1)");
    rig = std::make_unique<KubeFollowRig>(api.url(), options);
  }
  void BeginWatching(const KubeFollowerOptions& options = QuickOptions()) {
    Begin(options);
    rig->Start();
    ASSERT_TRUE(Becomes([&] { return api.open_watches() == 1; }));
  }
  // It is well again, and has told nothing twice.
  void ExpectRecovery(std::string_view trouble) {
    EXPECT_TRUE(rig->recorder.WaitFor("recovered"));
    api.Put("b", R"("weight":1)");
    EXPECT_TRUE(rig->recorder.WaitFor("object b"));
    EXPECT_THAT(rig->recorder.lines(),
                ElementsAre("object a", "listed", trouble, "recovered", "object b"));
  }

  KubeApi api;
  std::unique_ptr<KubeFollowRig> rig;
};

TEST_F(KubeTroubleTest, AGarbageLine) {
  BeginWatching();
  api.EndWatches(KubeApi::End::kGarbage);
  ExpectRecovery("trouble 0");
  EXPECT_THAT(rig->recorder.words(), AllOf(HasSubstr("cannot watch endpointslices in namespace ml"),
                                           HasSubstr("not an event")));
  EXPECT_EQ(api.lists(), 1u);
}

TEST_F(KubeTroubleTest, AHalfLineAndTheEnd) {
  BeginWatching();
  api.EndWatches(KubeApi::End::kHalfEvent);
  ExpectRecovery("trouble 0");
  EXPECT_THAT(rig->recorder.words(), HasSubstr("ended within an event"));
}

TEST_F(KubeTroubleTest, EndlessSilence) {
  KubeFollowerOptions options = QuickOptions();
  options.shortest_watch = options.longest_watch = std::chrono::seconds(1);
  options.grace = std::chrono::milliseconds(20);
  options.settle = std::chrono::milliseconds(200);
  BeginWatching(options);  // this server does not end a watch by itself
  EXPECT_TRUE(rig->recorder.WaitFor("trouble 0"));
  EXPECT_THAT(rig->recorder.words(), HasSubstr("cannot watch endpointslices"));
  EXPECT_TRUE(rig->recorder.WaitFor("recovered"));
  EXPECT_EQ(api.lists(), 1u);
}

TEST_F(KubeTroubleTest, AnotherContentType) {
  Begin();
  api.AnswerWith(200, "content-type: text/html\r\n", "<html>welcome</html>");
  rig->Start();
  EXPECT_TRUE(rig->recorder.WaitFor("recovered"));
  EXPECT_THAT(rig->recorder.lines(), ElementsAre("trouble 0", "object a", "listed", "recovered"));
  EXPECT_THAT(rig->recorder.words(), AllOf(HasSubstr("cannot list endpointslices"),
                                           HasSubstr("not of type application/json")));
}

TEST_F(KubeTroubleTest, AListThatIsNone) {
  for (const char* body : {"{}", "[]", "null", R"({"items":[],"metadata":{}})", R"({"items":)",
                           R"({"items":[{}],"metadata":{"resourceVersion":"1"}})"}) {
    KubeApi server;
    server.AnswerWith(200, kJsonType, body);
    KubeFollowRig follower(server.url());
    follower.Start();
    EXPECT_TRUE(follower.recorder.WaitFor("recovered")) << body;
    EXPECT_EQ(follower.recorder.lines().front(), "trouble 0") << body;
  }
}

TEST_F(KubeTroubleTest, AnEventWithoutEnd) {
  BeginWatching();
  api.Answer([](RawSocket& client, const std::string&) {
    client.Send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
    const std::string part(1 << 20, 'x');
    while (client.Send(part)) {
    }
  });
  api.EndWatches(KubeApi::End::kOrderly);
  ExpectRecovery("trouble 0");
  EXPECT_THAT(rig->recorder.words(), HasSubstr("longer than 8388608 bytes"));
}

TEST_F(KubeTroubleTest, ARetryAfterIsHonouredWithinBounds) {
  KubeFollowerOptions options = QuickOptions();
  options.longest_retry_after = std::chrono::milliseconds(300);
  Begin(options);
  api.AnswerWith(429, "retry-after: 3000\r\n", "storage is (re)initializing");
  const auto began = std::chrono::steady_clock::now();
  rig->Start();
  EXPECT_TRUE(rig->recorder.WaitFor("recovered"));
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(300));
  EXPECT_THAT(rig->recorder.lines(), ElementsAre("trouble 429", "object a", "listed", "recovered"));
}

TEST_F(KubeTroubleTest, AnOutageIsToldOnce) {
  BeginWatching();
  std::this_thread::sleep_for(2 * QuickOptions().settle);
  for (int i = 0; i < 3; ++i) {
    api.AnswerWith(503, "", "");
    api.Answer([](RawSocket&, const std::string&) {});  // closes without an answer
  }
  api.EndWatches(KubeApi::End::kCut);
  ExpectRecovery("trouble 503");
  EXPECT_EQ(api.lists(), 1u);
}

TEST_F(KubeTroubleTest, AWatchThatIsCutIsNoOutageWhileTheNextOneWorks) {
  BeginWatching();
  for (int i = 0; i < 3; ++i) {
    const std::string name = "n" + std::to_string(i);
    api.Put(name, R"("weight":1)");
    ASSERT_TRUE(rig->recorder.WaitFor("object " + name));
    api.EndWatches(KubeApi::End::kCut);
  }
  api.Put("b", R"("weight":1)");
  ASSERT_TRUE(rig->recorder.WaitFor("object b"));
  EXPECT_THAT(rig->recorder.lines(),
              ElementsAre("object a", "listed", "object n0", "object n1", "object n2", "object b"));
}

TEST_F(KubeTroubleTest, AfterALongOutageTheListIsReadAgain) {
  KubeFollowerOptions options = QuickOptions();
  options.relist_after = std::chrono::milliseconds(1);
  BeginWatching(options);
  for (int i = 0; i < 4; ++i) api.AnswerWith(503, "", "");
  api.EndWatches(KubeApi::End::kCut);
  EXPECT_TRUE(rig->recorder.WaitFor("recovered"));
  EXPECT_TRUE(rig->recorder.WaitFor("listed", 2));
  EXPECT_EQ(rig->recorder.Count("object a"), 1u);
}

TEST_F(KubeTroubleTest, OneForbiddenAnswerIsNoVerdict) {
  BeginWatching();
  api.AnswerWith(403, kJsonType, "{}");
  api.EndWatches(KubeApi::End::kOrderly);
  ASSERT_TRUE(Becomes([&] { return api.watches() == 3; }));
  api.Put("b", R"("weight":1)");
  ASSERT_TRUE(rig->recorder.WaitFor("object b"));
  EXPECT_THAT(rig->recorder.lines(), ElementsAre("object a", "listed", "object b"));
}

TEST_F(KubeTroubleTest, AMissingRightIsNamed) {
  BeginWatching();
  for (int i = 0; i < 5; ++i) api.AnswerWith(403, kJsonType, "{}");
  api.EndWatches(KubeApi::End::kOrderly);
  ExpectRecovery("trouble 403");
  EXPECT_THAT(rig->recorder.words(),
              AllOf(HasSubstr("cannot watch endpointslices in namespace ml"),
                    HasSubstr("Role with verb watch on endpointslices"),
                    HasSubstr("API group \"discovery.k8s.io\""),
                    HasSubstr("kubectl auth can-i watch endpointslices -n ml")));
}

TEST_F(KubeTroubleTest, AnUnknownResourceIsNamed) {
  Begin();
  api.AnswerWith(404, "content-type: text/plain\r\n", "404 page not found");
  rig->Start();
  EXPECT_TRUE(rig->recorder.WaitFor("recovered"));
  EXPECT_EQ(rig->recorder.lines().front(), "trouble 404");
  EXPECT_THAT(rig->recorder.words(), AllOf(HasSubstr("endpointslices"), HasSubstr("installed")));
}

TEST_F(KubeTroubleTest, RefusedCredentialsAreShownOnceMoreBeforeTheyAreTold) {
  Begin();
  api.AnswerWith(401, kJsonType, "{}");
  rig->Start();
  ASSERT_TRUE(rig->recorder.WaitFor("listed"));
  EXPECT_THAT(rig->recorder.lines(), ElementsAre("object a", "listed"));
  for (int i = 0; i < 4; ++i) api.AnswerWith(401, kJsonType, "{}");
  ASSERT_TRUE(Becomes([&] { return api.open_watches() == 1; }));
  api.EndWatches(KubeApi::End::kOrderly);
  ASSERT_TRUE(rig->recorder.WaitFor("recovered"));
  EXPECT_EQ(rig->recorder.Count("trouble 401"), 1u);
  EXPECT_THAT(rig->recorder.words(), AllOf(HasSubstr("401"), HasSubstr("log in again")));
}

TEST_F(KubeTroubleTest, AServerThatHasNoVersionAtAllIsAnOutage) {
  BeginWatching();
  for (int i = 0; i < 4; ++i) api.AnswerWith(410, kJsonType, R"({"code":410})");
  api.EndWatches(KubeApi::End::kOrderly);
  EXPECT_TRUE(rig->recorder.WaitFor("recovered"));
  EXPECT_THAT(rig->recorder.lines(),
              ElementsAre("object a", "listed", "trouble 410", "listed", "recovered"));
  EXPECT_THAT(rig->recorder.words(), HasSubstr("the server answers 410 to each list"));
}

TEST_F(KubeTroubleTest, AnErrorEventIsAnOutage) {
  BeginWatching();
  api.AnswerWith(200, kJsonType,
                 R"({"type":"ERROR","object":{"kind":"Status","code":500}})"
                 "\n");
  api.EndWatches(KubeApi::End::kOrderly);
  ExpectRecovery("trouble 500");
  EXPECT_EQ(api.lists(), 1u);
}

TEST_F(KubeTroubleTest, ACauseThatChangesIsTold) {
  Begin();
  api.AnswerWith(503, "", "");
  api.AnswerWith(404, "", "");
  api.AnswerWith(404, "", "");
  rig->Start();
  EXPECT_TRUE(rig->recorder.WaitFor("recovered"));
  EXPECT_THAT(rig->recorder.lines(),
              ElementsAre("trouble 503", "trouble 404", "object a", "listed", "recovered"));
}

}  // namespace
}  // namespace fathom
