// The follower and a real API server: changes, a crash, versions that are gone, rights, tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "testing/kube_cluster.h"
#include "testing/kube_follow_rig.h"

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSlices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
constexpr const char* kRoles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/";

std::string Slice(const std::string& name, const std::string& service, const std::string& address) {
  return fmt::format(
      R"({{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{{"name":"{}",)"
      R"("labels":{{"kubernetes.io/service-name":"{}"}}}},"addressType":"IPv4",)"
      R"("endpoints":[{{"addresses":["{}"]}}],"ports":[{{"port":8000}}]}})",
      name, service, address);
}

const KubeQuery kVllm = {.resource = kTestSlices,
                         .network_namespace = "default",
                         .label_selector = "kubernetes.io/service-name=vllm"};

class KubeClusterTest : public testing::Test {
 public:
  static void SetUpTestSuite() {
    if (KubeCluster::Found()) shared = std::make_unique<KubeCluster>();
  }
  static void TearDownTestSuite() { shared.reset(); }
  void SetUp() override {
    if (shared == nullptr) GTEST_SKIP() << KubeCluster::kMissing;
  }

  // As a pod finds it, in a copy whose token a test may replace.
  KubeAccess OwnAccount(const std::string& token = "") {
    const std::filesystem::path account = shared->folder() + "/account";
    std::filesystem::remove_all(account);
    std::filesystem::copy(shared->folder() + "/serviceaccount", account);
    if (!token.empty()) WriteToken(token);
    KubeSurroundings around;
    const Url server = *Url::Parse(shared->About("server"));
    around.service_host = server.host;
    around.service_port = std::to_string(server.port);
    around.account_folder = account;
    return *FindKubeAccess({}, around);
  }
  static void WriteToken(const std::string& token) {
    const std::string path = shared->folder() + "/account/token";
    std::filesystem::remove(path);
    std::ofstream(path) << token;
  }

  static void Allow() {
    shared->Send("POST", std::string(kRoles) + "roles",
                 R"({"metadata":{"name":"reader"},"rules":[{"apiGroups":["discovery.k8s.io"],)"
                 R"("resources":["endpointslices"],"verbs":["list","watch"]}]})");
    shared->Send("POST", std::string(kRoles) + "rolebindings",
                 R"({"metadata":{"name":"reader"},"roleRef":{"apiGroup":)"
                 R"("rbac.authorization.k8s.io","kind":"Role","name":"reader"},"subjects":)"
                 R"([{"kind":"ServiceAccount","name":"restricted","namespace":"default"}]})");
  }

  static inline std::unique_ptr<KubeCluster> shared;
};

TEST_F(KubeClusterTest, ChangesACrashAndAVersionThatIsGone) {
  shared->Send("POST", kSlices, Slice("a", "vllm", "10.0.0.1"));
  const auto access = FindKubeAccess({.kubeconfig = shared->About("kubeconfig")}, {});
  ASSERT_TRUE(access) << access.error().what;
  KubeFollowRig rig(*access, kVllm);
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("listed"));
  shared->Send("PATCH", std::string(kSlices) + "/a",
               R"({"endpoints":[{"addresses":["10.0.0.2"]}]})", "application/merge-patch+json");
  ASSERT_TRUE(rig.recorder.WaitFor("object a", 2));
  EXPECT_THAT(rig.recorder.picture()["a"], HasSubstr("10.0.0.2"));
  shared->Send("POST", kSlices, Slice("b", "vllm", "10.0.0.3"));
  shared->Send("DELETE", std::string(kSlices) + "/b", "");
  ASSERT_TRUE(rig.recorder.WaitFor("gone b"));
  // The cluster's version moves behind the watch's back, so that it is too old after a restart.
  shared->Send("POST", kSlices, Slice("c", "other", "10.0.0.4"));
  shared->Kill();
  ASSERT_TRUE(rig.recorder.WaitFor("trouble 0"));
  shared->Revive();
  ASSERT_TRUE(rig.recorder.WaitFor("recovered"));
  shared->Send("POST", kSlices, Slice("d", "vllm", "10.0.0.5"));
  ASSERT_TRUE(rig.recorder.WaitFor("object d"));
  EXPECT_EQ(rig.recorder.Count("trouble 0"), 1u);
  EXPECT_EQ(rig.recorder.Count("listed"), 2u);
  EXPECT_EQ(rig.recorder.Count("object a"), 2u);
  EXPECT_EQ(rig.recorder.Count("gone a"), 0u);
  EXPECT_EQ(rig.recorder.picture().size(), 2u);
}

TEST_F(KubeClusterTest, PagesOfARealList) {
  for (int i = 0; i < 5; ++i) {
    shared->Send("POST", kSlices, Slice("p" + std::to_string(i), "paged", "10.0.1.1"));
  }
  const auto access = FindKubeAccess({.kubeconfig = shared->About("kubeconfig")}, {});
  KubeQuery query = kVllm;
  query.label_selector = "kubernetes.io/service-name=paged";
  KubeFollowerOptions options = QuickOptions();
  options.page = 2;
  KubeFollowRig rig(*access, query, options);
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("listed"));
  EXPECT_THAT(rig.recorder.lines(), ElementsAre("object p0", "object p1", "object p2", "object p3",
                                                "object p4", "listed"));
}

TEST_F(KubeClusterTest, RightsAndTokensThatComeLater) {
  shared->Send("POST", kSlices, Slice("e", "vllm", "10.0.0.6"));
  KubeFollowRig rig(OwnAccount("not-a-token"), kVllm);
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("trouble 401"));
  const std::string token = shared->About("restricted_token");
  WriteToken(token);
  ASSERT_TRUE(rig.recorder.WaitFor("trouble 403"));
  EXPECT_THAT(rig.recorder.words(),
              AllOf(HasSubstr("cannot list endpointslices in namespace default"),
                    HasSubstr("Role with verb list on endpointslices")));
  EXPECT_THAT(rig.recorder.words(), testing::Not(HasSubstr(token)));
  Allow();
  ASSERT_TRUE(rig.recorder.WaitFor("recovered"));
  EXPECT_EQ(rig.recorder.picture().count("e"), 1u);
}

}  // namespace
}  // namespace fathom
