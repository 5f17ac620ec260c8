#include "diagnose/doctor/kube_pod.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

KubePod Read(std::string_view json) { return ReadPod(*Json::Parse(json)); }

TEST(KubePod, SaysWhereItRunsAndHowItFares) {
  const KubePod pod = Read(R"({
    "metadata": {"name": "vllm-0", "ownerReferences": [
      {"kind": "Other", "name": "x"}, {"kind": "StatefulSet", "name": "vllm", "controller": true}]},
    "spec": {"nodeName": "gpu-3", "containers": [{"name": "engine", "image": "vllm:1"},
                                                 {"name": "side", "image": "s"}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}],
      "containerStatuses": [
        {"name": "side", "ready": true, "restartCount": 1, "imageID": "s@sha256:1"},
        {"name": "engine", "ready": false, "restartCount": 4, "imageID": "vllm@sha256:2",
         "state": {"waiting": {"reason": "CrashLoopBackOff"}},
         "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}})");
  EXPECT_EQ(pod.name, "vllm-0");
  EXPECT_EQ(pod.owner, "StatefulSet vllm");
  EXPECT_EQ(pod.node, "gpu-3");
  EXPECT_EQ(pod.phase, "Running");
  EXPECT_FALSE(pod.ready);
  EXPECT_EQ(pod.Restarts(), 5u);
  EXPECT_TRUE(pod.OutOfMemory());
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_EQ(pod.containers[0].waiting, "CrashLoopBackOff");
  EXPECT_EQ(pod.containers[0].last_exit, 137);
  EXPECT_EQ(pod.containers[0].image_id, "vllm@sha256:2");
  EXPECT_TRUE(pod.containers[1].ready);
}

TEST(KubePod, ThatIsWellSaysNothingElse) {
  const KubePod pod = Read(R"({"metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c"}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
      "containerStatuses": [{"name": "c", "ready": true, "restartCount": 0,
                             "state": {"running": {}}}]}})");
  EXPECT_TRUE(pod.ready);
  EXPECT_EQ(pod.owner, "");
  EXPECT_EQ(pod.Restarts(), 0u);
  EXPECT_FALSE(pod.OutOfMemory());
  EXPECT_EQ(pod.containers[0].last_ended, "");
}

TEST(KubePod, OfAnotherShapeIsEmptyWhereItSaysNothing) {
  for (const char* json :
       {"{}", "[]", "null", R"({"metadata": 1, "spec": [], "status": "x"})",
        R"({"metadata": {"name": 7, "ownerReferences": {}}, "spec": {"containers": [1, null]},
            "status": {"conditions": [3], "containerStatuses": [{"restartCount": -1}]}})"}) {
    const KubePod pod = Read(json);
    EXPECT_EQ(pod.name, "") << json;
    EXPECT_FALSE(pod.ready) << json;
    EXPECT_EQ(pod.Restarts(), 0u) << json;
  }
}

}  // namespace
}  // namespace fathom
