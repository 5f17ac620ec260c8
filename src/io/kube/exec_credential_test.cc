#include "io/kube/exec_credential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "codec/base64.h"
#include "codec/json.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kVersion = "client.authentication.k8s.io/v1";

ExecPlugin Shell(const std::string& script) {
  ExecPlugin plugin;
  plugin.command = "sh";
  plugin.arguments = {"-c", script};
  plugin.api_version = kVersion;
  return plugin;
}

// A script that prints a credential whose token is the shell's `word`.
std::string Tells(const std::string& word) {
  return R"(printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",)"
         R"("status":{"token":"%s"}}' ")" +
         word + "\"";
}

Result<KubeIdentity> RunShell(const std::string& script,
                              Duration patience = std::chrono::seconds(20)) {
  return RunExecPlugin(Shell(script), {}, patience);
}

TEST(ExecPlugin, ItsTokenIsTheIdentity) {
  const auto identity = RunShell(Tells("t-1"));
  ASSERT_TRUE(identity) << identity.error().what;
  EXPECT_EQ(identity->token, "t-1");
}

TEST(ExecPlugin, SeesItsVariablesAndOurs) {
  ExecPlugin plugin = Shell(Tells("$PROFILE-${PATH:+path}"));
  plugin.variables = {{"PROFILE", "prod"}};
  const auto identity = RunExecPlugin(plugin, {});
  ASSERT_TRUE(identity) << identity.error().what;
  EXPECT_EQ(identity->token, "prod-path");
}

TEST(ExecPlugin, IsToldWhichClusterItIsForWhereItAsksForThat) {
  ExecPlugin plugin = Shell(Tells("$(printf '%s' \"$KUBERNETES_EXEC_INFO\" | base64 -w0)"));
  KubeAccess access;
  access.server = *Url::Parse("https://api.example:6443");
  access.authorities = "pem";
  const auto info = [&] {
    const auto identity = RunExecPlugin(plugin, access);
    return identity ? DecodeBase64(identity->token).value_or("") : identity.error().what;
  };
  EXPECT_THAT(info(), HasSubstr(R"("spec":{"interactive":false})"));
  plugin.provide_cluster_info = true;
  EXPECT_THAT(info(), HasSubstr(R"("server":"https://api.example:6443")"));
  EXPECT_TRUE(Json::Parse(info()));
}

TEST(ExecPlugin, HasNothingToReadFrom) {
  const auto identity = RunShell("cat >/dev/null; " + Tells("t"));
  EXPECT_TRUE(identity) << identity.error().what;
}

TEST(ExecPlugin, ThatFailsIsNamedButNotQuoted) {
  const auto failed = RunShell("echo s3cret; exit 7");
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().what, HasSubstr("exec plugin sh"));
  EXPECT_THAT(failed.error().what, HasSubstr("status 7"));
  EXPECT_THAT(failed.error().what, Not(HasSubstr("s3cret")));
  const auto babbling = RunShell("echo s3cret");
  ASSERT_FALSE(babbling);
  EXPECT_THAT(babbling.error().what, HasSubstr("no ExecCredential"));
  EXPECT_THAT(babbling.error().what, Not(HasSubstr("s3cret")));
}

TEST(ExecPlugin, ThatIsMissingSaysHowToGetIt) {
  ExecPlugin plugin = Shell("");
  plugin.command = "no-such-program-of-fathom";
  plugin.install_hint = "install it from the shelf";
  const auto identity = RunExecPlugin(plugin, {});
  ASSERT_FALSE(identity);
  EXPECT_THAT(identity.error().what, HasSubstr("no-such-program-of-fathom"));
  EXPECT_THAT(identity.error().what, HasSubstr("from the shelf"));
}

TEST(ExecPlugin, ThatDoesNotEndIsEnded) {
  const auto identity = RunShell("exec sleep 1000", std::chrono::milliseconds(50));
  ASSERT_FALSE(identity);
  EXPECT_THAT(identity.error().what, HasSubstr("in time"));
}

TEST(ExecPlugin, ThatPrintsWithoutEndIsEnded) {
  const auto identity = RunShell("exec yes");
  ASSERT_FALSE(identity);
  EXPECT_THAT(identity.error().what, HasSubstr("more than"));
}

TEST(ExecPlugin, ThatWantsATerminalIsNotRun) {
  ExecPlugin plugin = Shell(Tells("t"));
  plugin.interactive_mode = "Always";
  const auto identity = RunExecPlugin(plugin, {});
  ASSERT_FALSE(identity);
  EXPECT_THAT(identity.error().what, HasSubstr("terminal"));
}

TEST(ExecCredential, MayBeACertificateWithItsKey) {
  const auto identity = ReadExecCredential(
      R"({"kind":"ExecCredential","apiVersion":"v","status":
          {"clientCertificateData":"chain","clientKeyData":"key"}})",
      "v");
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->certificate, "chain");
  EXPECT_EQ(identity->key, "key");
}

TEST(ExecCredential, IsRefusedWhereItIsNotWhole) {
  for (const char* text :
       {"", "[]", "{}", R"({"kind":"ExecCredential","apiVersion":"v"})",
        R"({"kind":"ExecCredential","apiVersion":"v","status":{}})",
        R"({"kind":"ExecCredential","apiVersion":"v","status":{"token":7}})",
        R"({"kind":"ExecCredential","apiVersion":"v","status":{"clientKeyData":"k"}})",
        R"({"kind":"ExecCredential","apiVersion":"w","status":{"token":"t"}})"}) {
    EXPECT_FALSE(ReadExecCredential(text, "v")) << text;
  }
}

}  // namespace
}  // namespace fathom
