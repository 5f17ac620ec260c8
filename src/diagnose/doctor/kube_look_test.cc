#include "diagnose/doctor/kube_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "codec/base64.h"
#include "diagnose/manifest/deployment_reader.h"
#include "io/kube/kube_client.h"
#include "testing/loopback_server.h"

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Answers by path; what is not among the pages is an empty list.
class Api final : public HttpHandler {
 public:
  std::map<std::string, Answer> pages;
  std::vector<std::string> requests;
  std::vector<std::string> keys;

  Task<void> Handle(ServerConnection& connection) override {
    const std::string target(connection.head().target);
    requests.push_back(std::string(connection.head().method) + " " + target);
    const Header* const key = connection.head().headers.Find("authorization");
    keys.emplace_back(key == nullptr ? "" : key->value);
    const auto found = pages.find(target);
    const auto bare = pages.find(target.substr(0, target.find('?')));
    Answer answer{.body = R"({"items": []})"};
    if (bare != pages.end()) answer = bare->second;
    if (found != pages.end()) answer = found->second;
    auto responding = connection.Respond(answer);
    co_await responding;
  }
  Answer Refuse(const RequestProblem& problem) override { return {.status = problem.status}; }
};

constexpr std::string_view kApps = "/apis/apps/v1/namespaces/ml/";
constexpr std::string_view kCore = "/api/v1/namespaces/ml/";

struct Cluster {
  Cluster() {
    char name[] = "/tmp/fathom_kube_look_test.XXXXXX";
    folder = ::mkdtemp(name);
  }
  ~Cluster() { std::filesystem::remove_all(folder); }

  void Put(std::string_view root, const std::string& rest, const std::string& body) {
    api.pages[std::string(root) + rest] = {.body = body};
  }
  void Refuse(std::string_view root, const std::string& rest, int status) {
    api.pages[std::string(root) + rest] = {.status = status, .body = "{}"};
  }

  KubeView Look(size_t log_lines = 100) {
    LoopbackServer server(thread, api);
    const std::string file = folder + "/config";
    std::ofstream(file) << "current-context: x\ncontexts:\n"
                        << "- {name: x, context: {cluster: c, namespace: ml}}\n"
                        << "clusters:\n- {name: c, cluster: {server: 'http://"
                        << server.address().ToString() << "'}}\n";
    KubeTarget target{.wish = {.kubeconfig = file}, .log_lines = log_lines};
    return LookAtCluster(target, [this](std::string_view source, std::string_view piece) {
      logs[std::string(source)] += piece;
    });
  }

  LoopThread thread;
  Api api;
  std::string folder;
  std::map<std::string, std::string> logs;
};

std::vector<std::string> FileNames(const KubeView& view) {
  std::vector<std::string> names;
  for (const SourceFile& file : view.files) names.push_back(file.name);
  return names;
}

constexpr std::string_view kEnginePod = R"({"metadata": {"name": "vllm-1", "ownerReferences":
    [{"kind": "ReplicaSet", "name": "vllm-7c", "controller": true}]},
    "spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.9.0"},
                            {"name": "mesh", "image": "envoy:1"}]},
    "status": {"phase": "Running"}})";
constexpr std::string_view kOtherPod = R"({"metadata": {"name": "web"},
    "spec": {"containers": [{"name": "nginx", "image": "nginx:1"}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})";

std::string List(std::initializer_list<std::string_view> items, const std::string& next = "") {
  std::string text = R"({"kind": "XList", "metadata": {"continue": ")" + next + "\"}, \"items\": [";
  for (const std::string_view item : items)
    text.append(text.ends_with('[') ? "" : ",").append(item);
  return text + "]}";
}

TEST(KubeLook, GivesEveryObjectAsAFileOfItsOwn) {
  Cluster cluster;
  cluster.Put(kApps, "deployments",
              List({R"({"metadata": {"name": "vllm"}, "spec": {"replicas": 2}})"}));
  cluster.Put(kCore, "services", List({R"({"metadata": {"name": "front"}})"}));
  const KubeView view = cluster.Look();
  EXPECT_TRUE(view.seen);
  EXPECT_EQ(view.problem, "");
  EXPECT_THAT(FileNames(view), ElementsAre("kube:deployments/vllm", "kube:services/front"));
  EXPECT_EQ(view.files[0].text,
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: vllm\nspec:\n"
            "  replicas: 2\n");
}

TEST(KubeLook, SendsNothingButGetsAndReadsNoSecrets) {
  Cluster cluster;
  cluster.Put(kCore, "pods", List({kEnginePod, kOtherPod}));
  const KubeView view = cluster.Look();
  EXPECT_THAT(cluster.api.requests, Each(StartsWith("GET ")));
  EXPECT_THAT(cluster.api.requests, Each(Not(HasSubstr("secret"))));
  uint64_t sent = 0;
  for (const SentRequest& request : view.sent) {
    EXPECT_EQ(request.method, "GET");
    sent += request.times;
  }
  EXPECT_EQ(sent, cluster.api.requests.size());
}

TEST(KubeLook, ReadsLongListsPageByPage) {
  Cluster cluster;
  cluster.Put(kCore, "configmaps?limit=200", List({R"({"metadata": {"name": "a"}})"}, "t/1="));
  cluster.Put(kCore, "configmaps?limit=200&continue=t%2F1%3D",
              List({R"({"metadata": {"name": "b"}})"}));
  const KubeView view = cluster.Look();
  EXPECT_THAT(FileNames(view), ElementsAre("kube:configmaps/a", "kube:configmaps/b"));
}

TEST(KubeLook, KeepsWhatItHasWhenAPageHasExpired) {
  Cluster cluster;
  cluster.Put(kCore, "services?limit=200", List({R"({"metadata": {"name": "a"}})"}, "t"));
  cluster.Refuse(kCore, "services?limit=200&continue=t", 410);
  const KubeView view = cluster.Look();
  EXPECT_THAT(FileNames(view), ElementsAre("kube:services/a"));
  EXPECT_THAT(view.missing, testing::Contains(HasSubstr("changed while it was read")));
}

TEST(KubeLook, StopsAListThatDoesNotEnd) {
  Cluster cluster;
  std::string items;
  for (int i = 0; i < 3000; ++i) items += (i == 0 ? "" : ",") + std::string("{\"metadata\":{}}");
  cluster.Put(kCore, "configmaps",
              "{\"metadata\": {\"continue\": \"on\"}, \"items\": [" + items + "]}");
  const KubeView view = cluster.Look();
  EXPECT_EQ(view.files.size(), KubeClient::kMaxObjects);
  EXPECT_THAT(view.missing, testing::Contains(HasSubstr("only the first 10000")));
}

TEST(KubeLook, APodThatSomethingMadeIsAFactAndNoFile) {
  Cluster cluster;
  cluster.Put(kCore, "pods", List({kEnginePod, kOtherPod}));
  const KubeView view = cluster.Look();
  EXPECT_THAT(FileNames(view), ElementsAre("kube:pods/web"));
  ASSERT_EQ(view.pods.size(), 2u);
  EXPECT_EQ(view.pods[0].owner, "ReplicaSet vllm-7c");
  EXPECT_TRUE(view.pods[0].containers[0].serves);
  EXPECT_FALSE(view.pods[0].containers[1].serves);
  EXPECT_THAT(view.lines, testing::Contains(HasSubstr("2 pods in namespace ml: 1 ready")));
}

TEST(KubeLook, SaysWhoHasMadeAnObjectSoThatItCountsOnce) {
  Cluster cluster;
  cluster.Put(kApps, "statefulsets", List({R"({"metadata": {"name": "made", "ownerReferences":
      [{"kind": "Deployment", "name": "vllm", "controller": true}]}, "spec": {"template": {"spec":
      {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.9.0"}]}}}})"}));
  const KubeView alone = cluster.Look();
  EXPECT_EQ(ReadDeploymentFiles(alone.files).deployment.programs.size(), 1u);
  cluster.Put(kApps, "deployments", List({R"({"metadata": {"name": "vllm"}, "spec": {"template":
      {"spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.9.0"}]}}}})"}));
  const KubeView both = cluster.Look();
  const auto programs = ReadDeploymentFiles(both.files).deployment.programs;
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_EQ(programs[0].name, "Deployment vllm, container engine");
}

TEST(KubeLook, ReadsTheLogsOfContainersThatServeModels) {
  Cluster cluster;
  cluster.Put(kCore, "pods", List({kEnginePod, kOtherPod}));
  cluster.Put(kCore, "pods/vllm-1/log?container=engine&tailLines=7", "one\ntwo\n");
  const KubeView view = cluster.Look(7);
  EXPECT_THAT(cluster.logs,
              UnorderedElementsAre(std::pair("kube:pods/vllm-1/engine", "one\ntwo\n")));
  EXPECT_EQ(view.looked_at.back().outcome, "8 bytes");
}

TEST(KubeLook, ReadsAllLogsWhereItKnowsNoneOfThePods) {
  Cluster cluster;
  cluster.Put(kCore, "pods", List({kOtherPod}));
  cluster.Put(kCore, "pods/web/log", "hello\n");
  cluster.Look();
  EXPECT_THAT(cluster.logs, UnorderedElementsAre(std::pair("kube:pods/web/nginx", "hello\n")));
}

TEST(KubeLook, ReadsNoLogsWhereNoneAreWanted) {
  Cluster cluster;
  cluster.Put(kCore, "pods", List({kEnginePod}));
  const KubeView view = cluster.Look(0);
  EXPECT_THAT(cluster.api.requests, Each(Not(HasSubstr("/log"))));
  EXPECT_THAT(view.missing, ElementsAre(HasSubstr("--kube-log-lines")));
}

TEST(KubeLook, AKindThatTheClusterDoesNotKnowIsNoProblem) {
  Cluster cluster;
  cluster.Refuse("/apis/nvidia.com/v1alpha1/namespaces/ml/", "dynamographdeployments", 404);
  const KubeView view = cluster.Look();
  EXPECT_TRUE(view.seen);
  EXPECT_THAT(view.missing, Each(Not(HasSubstr("dynamo"))));
  for (const LookedAt& looked : view.looked_at) EXPECT_TRUE(looked.seen) << looked.what;
}

TEST(KubeLook, AServerThatIsNoKubernetesIsNotTakenForAnEmptyCluster) {
  Cluster cluster;
  for (const char* kind : {"deployments", "statefulsets", "daemonsets"}) {
    cluster.Refuse(kApps, kind, 404);
  }
  for (const char* kind : {"services", "configmaps", "pods"}) cluster.Refuse(kCore, kind, 404);
  cluster.Refuse("/apis/nvidia.com/v1alpha1/namespaces/ml/", "dynamographdeployments", 404);
  cluster.Refuse("/apis/leaderworkerset.x-k8s.io/v1/namespaces/ml/", "leaderworkersets", 404);
  const KubeView view = cluster.Look();
  EXPECT_FALSE(view.seen);
  EXPECT_NE(view.problem, "");
}

TEST(KubeLook, WhatIsForbiddenIsNamedWithTheRoleThatItTakes) {
  Cluster cluster;
  cluster.Refuse(kCore, "pods", 403);
  cluster.Put(kApps, "deployments", List({R"({"metadata": {"name": "vllm"}})"}));
  const KubeView view = cluster.Look();
  EXPECT_TRUE(view.seen);
  EXPECT_THAT(FileNames(view), ElementsAre("kube:deployments/vllm"));
  EXPECT_THAT(view.missing,
              ElementsAre(AllOf(HasSubstr("cannot list pods in namespace ml"),
                                HasSubstr("verb list on pods"), HasSubstr("kubectl auth can-i"))));
}

TEST(KubeLook, LogsThatAreForbiddenAreAskedForOnce) {
  Cluster cluster;
  cluster.Put(kCore, "pods", List({kEnginePod, kEnginePod}));
  cluster.Refuse(kCore, "pods/vllm-1/log", 403);
  const KubeView view = cluster.Look();
  EXPECT_EQ(std::ranges::count_if(cluster.api.requests,
                                  [](const std::string& r) { return r.contains("/log"); }),
            1);
  EXPECT_THAT(view.missing, ElementsAre(HasSubstr("cannot get pods/log in namespace ml")));
}

TEST(KubeLook, ThatIsNotLetInSaysSoAndAsksNoMore) {
  Cluster cluster;
  cluster.Refuse(kApps, "deployments", 401);
  const KubeView view = cluster.Look();
  EXPECT_FALSE(view.seen);
  EXPECT_THAT(view.problem, HasSubstr("401 unauthorized"));
  EXPECT_EQ(cluster.api.requests.size(), 1u);
}

TEST(KubeLook, AnAnswerThatIsNoListIsSaid) {
  for (const char* body :
       {"", "nonsense", "[]", "{\"items\": 7}", "{\"items\": [1, \"x\", null]}"}) {
    Cluster cluster;
    cluster.Put(kCore, "services", body);
    cluster.Put(kCore, "configmaps", List({R"({"metadata": {"name": "a"}})"}));
    const KubeView view = cluster.Look();
    EXPECT_THAT(FileNames(view), ElementsAre("kube:configmaps/a")) << body;
  }
}

TEST(KubeLook, ACredentialIsInNothingThatIsShown) {
  Cluster cluster;
  const std::string file = cluster.folder + "/secret";
  std::ofstream(file)
      << "current-context: x\ncontexts:\n- {name: x, context: {cluster: c, user: u}}"
         "\nclusters:\n- {name: c, cluster: {server: 'https://127.0.0.1:1'}}\n"
         "users:\n- {name: u, user: {token: \"s3cret\\nx: y\"}}\n";
  const KubeView view = LookAtCluster({.wish = {.kubeconfig = file}}, {});
  EXPECT_FALSE(view.seen);
  EXPECT_THAT(view.problem, AllOf(HasSubstr("token"), Not(HasSubstr("s3cret"))));
}

TEST(KubeLook, WithoutAKubeconfigSaysWhereItHasLooked) {
  const KubeView view = LookAtCluster({.surroundings = {}}, {});
  EXPECT_FALSE(view.seen);
  EXPECT_THAT(view.problem, HasSubstr("--kubeconfig"));
  EXPECT_THAT(view.sent, IsEmpty());
}

}  // namespace
}  // namespace fathom
