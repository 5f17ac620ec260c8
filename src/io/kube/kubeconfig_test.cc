#include "io/kube/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "codec/base64.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class KubeconfigTest : public testing::Test {
 public:
  KubeconfigTest() {
    char name[] = "/tmp/fathom_kubeconfig_test.XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~KubeconfigTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  // One context of each kind of user, all with the same cluster.
  std::string WriteUser(const std::string& user, const std::string& cluster = "") {
    return Write("config",
                 "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
                 "contexts:\n- name: here\n  context: {cluster: c, user: u}\n"
                 "clusters:\n- name: c\n  cluster:\n"
                 "    server: https://api.example:6443\n" +
                     cluster + "users:\n- name: u\n  user:\n" + user);
  }

  Result<KubeAccess> Find(const std::string& file, KubeWish wish = {}) {
    wish.kubeconfig = file;
    return FindKubeAccess(wish, {});
  }

  std::string folder_;
};

std::string Problem(const Result<KubeAccess>& access) {
  return access ? "no problem" : access.error().what;
}

constexpr std::string_view kTwo =
    "current-context: prod\n"
    "contexts:\n"
    "- name: prod\n"
    "  context: {cluster: far, user: ada, namespace: ml}\n"
    "- name: dev\n"
    "  context: {cluster: near, user: ada}\n"
    "clusters:\n"
    "- {name: far, cluster: {server: 'https://far.example'}}\n"
    "- {name: near, cluster: {server: 'http://127.0.0.1:8001'}}\n"
    "users:\n"
    "- {name: ada, user: {token: s3cret}}\n";

TEST_F(KubeconfigTest, TheCurrentContextIsTakenUnlessAnotherIsNamed) {
  const std::string file = Write("config", std::string(kTwo));
  const auto prod = Find(file);
  ASSERT_TRUE(prod) << prod.error().what;
  EXPECT_EQ(prod->server.ToString(), "https://far.example:443");
  EXPECT_EQ(prod->network_namespace, "ml");
  EXPECT_EQ(prod->identity.token, "s3cret");
  EXPECT_EQ(prod->origin, "context prod of " + file);
  const auto dev = Find(file, {.context = "dev"});
  ASSERT_TRUE(dev) << dev.error().what;
  EXPECT_EQ(dev->network_namespace, "default");
}

TEST_F(KubeconfigTest, TheNamespaceThatIsAskedForWins) {
  const auto access = Find(Write("config", std::string(kTwo)), {.network_namespace = "other"});
  ASSERT_TRUE(access);
  EXPECT_EQ(access->network_namespace, "other");
  for (const char* wrong : {"../secrets", "ml?x=1", "ML", "a b"}) {
    const auto refused = Find(Write("config", std::string(kTwo)), {.network_namespace = wrong});
    EXPECT_THAT(Problem(refused), HasSubstr("not a valid namespace name")) << wrong;
  }
}

TEST_F(KubeconfigTest, NobodyIsToldWhoWeAreOverPlainHttp) {
  const auto access = Find(Write("config", std::string(kTwo)), {.context = "dev"});
  ASSERT_TRUE(access);
  EXPECT_EQ(access->identity.token, "");
}

TEST_F(KubeconfigTest, MayBeJson) {
  const auto access = Find(Write("config", R"({"current-context": "x",
      "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
      "clusters": [{"name": "c", "cluster": {"server": "https://api.example"}}],
      "users": [{"name": "u", "user": {"token": "t"}}]})"));
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->identity.token, "t");
}

TEST_F(KubeconfigTest, CertificatesComeAsDataOrFromFilesBesideIt) {
  Write("pki/ca.pem", "the authorities");
  Write("pki/key.pem", "the key");
  const auto access = Find(WriteUser("    client-certificate-data: " + EncodeBase64("the chain") +
                                         "\n    client-key: pki/key.pem\n",
                                     "    certificate-authority: pki/ca.pem\n"
                                     "    tls-server-name: kubernetes.default\n"));
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->authorities, "the authorities");
  EXPECT_EQ(access->identity.certificate, "the chain");
  EXPECT_EQ(access->identity.key, "the key");
  EXPECT_EQ(access->tls_server_name, "kubernetes.default");
}

TEST_F(KubeconfigTest, ATokenMayStandInAFile) {
  Write("token", "from-file\n");
  const auto access = Find(WriteUser("    token: older\n    tokenFile: token\n"));
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->identity.token, "from-file");
}

TEST_F(KubeconfigTest, ANameAndAPasswordAreAnIdentity) {
  const auto access = Find(WriteUser("    username: ada\n    password: s3cret\n"));
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->identity.username, "ada");
  EXPECT_EQ(access->identity.password, "s3cret");
}

TEST_F(KubeconfigTest, TheFirstFileThatHasANameDecides) {
  const std::string first = Write("a",
                                  "contexts:\n- {name: x, context: {cluster: c, user: u}}\n"
                                  "users:\n- {name: u, user: {token: first}}\n");
  const std::string second =
      Write("b",
            "current-context: x\nclusters:\n- {name: c, cluster: {server: 'https://b'}}\n"
            "users:\n- {name: u, user: {token: second}}\n");
  const KubeSurroundings around{.kubeconfig = first + ":/nowhere/at/all:" + second};
  const auto access = FindKubeAccess({}, around);
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->identity.token, "first");
  EXPECT_EQ(access->server.host, "b");
}

TEST_F(KubeconfigTest, TheFileInTheHomeFolderIsTheUsualOne) {
  Write(".kube/config", std::string(kTwo));
  const KubeSurroundings around{.home = folder_, .service_host = "10.0.0.1"};
  const auto access = FindKubeAccess({}, around);
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->server.host, "far.example");
}

TEST_F(KubeconfigTest, APodHasAnAccountOfItsOwn) {
  Write("account/token", "pod-token\n");
  Write("account/ca.crt", "the authorities");
  Write("account/namespace", "ml");
  KubeSurroundings around{.home = folder_, .service_host = "fd00::1", .service_port = "6443"};
  around.account_folder = folder_ + "/account";
  const auto access = FindKubeAccess({}, around);
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->server.ToString(), "https://[fd00::1]:6443");
  EXPECT_EQ(access->identity.token, "pod-token");
  EXPECT_EQ(access->authorities, "the authorities");
  EXPECT_EQ(access->network_namespace, "ml");
  around.account_folder = folder_ + "/nowhere";
  EXPECT_THAT(Problem(FindKubeAccess({}, around)), HasSubstr("/nowhere/token"));
}

TEST_F(KubeconfigTest, APluginIsReadWithItsArgumentsAndVariables) {
  const auto access = Find(WriteUser(
      "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: bin/login\n"
      "      args: [get-token, --cluster, x]\n      env:\n      - {name: PROFILE, value: prod}\n"
      "      interactiveMode: Never\n      provideClusterInfo: true\n"));
  ASSERT_TRUE(access) << access.error().what;
  ASSERT_TRUE(access->plugin);
  EXPECT_EQ(access->plugin->command, folder_ + "/bin/login");
  EXPECT_THAT(access->plugin->arguments, ElementsAre("get-token", "--cluster", "x"));
  EXPECT_THAT(access->plugin->variables, ElementsAre(std::pair("PROFILE", "prod")));
  EXPECT_TRUE(access->plugin->provide_cluster_info);
}

TEST_F(KubeconfigTest, ErrorsNameTheFileTheContextAndWhatWouldHelp) {
  const std::string file = Write("config", std::string(kTwo));
  EXPECT_THAT(Problem(Find(file, {.context = "prd"})),
              testing::AllOf(HasSubstr(file), HasSubstr("context prd"), HasSubstr("--kube-context"),
                             HasSubstr("prod, dev")));
  EXPECT_THAT(Problem(Find(folder_ + "/none")), HasSubstr(folder_ + "/none"));
  EXPECT_THAT(Problem(Find(Write("empty", ""))), HasSubstr("no current-context"));
  EXPECT_THAT(Problem(Find(Write("torn", "contexts: [{name: \n"))), HasSubstr("torn"));
  EXPECT_THAT(Problem(FindKubeAccess({}, {})), HasSubstr("--kubeconfig"));
}

TEST_F(KubeconfigTest, VerificationCannotBeSwitchedOff) {
  const auto access = Find(WriteUser("    token: t\n", "    insecure-skip-tls-verify: true\n"));
  EXPECT_THAT(Problem(access), HasSubstr("insecure-skip-tls-verify is refused"));
}

TEST_F(KubeconfigTest, WhatIsNotSupportedIsSaid) {
  for (const char* user : {"auth-provider: {name: oidc}", "as: root"}) {
    const auto access = Find(WriteUser("    token: s3cret\n    " + std::string(user) + "\n"));
    EXPECT_THAT(Problem(access), HasSubstr("not supported")) << user;
    EXPECT_THAT(Problem(access), Not(HasSubstr("s3cret")));
  }
  EXPECT_THAT(Problem(Find(WriteUser("    token: t\n", "    proxy-url: http://p\n"))),
              HasSubstr("kubectl proxy"));
  EXPECT_THAT(Problem(Find(WriteUser("    client-certificate-data: eA==\n"))),
              HasSubstr("must be given together"));
}

TEST_F(KubeconfigTest, NoErrorTellsASecret) {
  const std::string key = EncodeBase64("BEGIN s3cret");
  for (const std::string& user :
       {"    client-certificate-data: '%%%'\n    client-key-data: " + key + "\n",
        std::string("    token: s3cret\n    tokenFile: nowhere\n"),
        std::string("    token: s3cret\n    exec: {}\n")}) {
    const auto access = Find(WriteUser(user));
    ASSERT_FALSE(access) << user;
    EXPECT_THAT(access.error().what, Not(HasSubstr("s3cret")));
    EXPECT_THAT(access.error().what, Not(HasSubstr(key)));
  }
  const auto with_password = Find(WriteUser("    token: t\n", "    server: https://u:s3cret@h\n"));
  ASSERT_FALSE(with_password);
  EXPECT_THAT(with_password.error().what, Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace fathom
