#include "io/kube/kube_login.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "testing/loop_thread.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class KubeLoginTest : public testing::Test {
 public:
  KubeLoginTest() {
    char name[] = "/tmp/fathom_kube_login_test.XXXXXX";
    folder_ = ::mkdtemp(name);
    access_.origin = "a test";
    access_.server = *Url::Parse("https://api.example:6443");
  }
  ~KubeLoginTest() override {
    CloseLogin();
    std::filesystem::remove_all(folder_);
  }

  // As Kubernetes replaces them: a new file under the old name.
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
    return path;
  }

  void OpenLogin() {
    auto login = KubeLogin::Create(thread_.loop(), access_);
    ASSERT_TRUE(login) << login.error().what;
    login_ = *std::move(login);
  }
  void CloseLogin() {
    thread_.Call([this] { login_.reset(); });
    thread_.Settle();
  }
  Result<std::shared_ptr<const KubePass>> Current() {
    return thread_.Complete([this] { return login_->Current(); });
  }
  std::string Authorization() {
    const auto pass = Current();
    return pass ? (*pass)->authorization : pass.error().what;
  }
  void Refuse() {
    const auto pass = Current();
    thread_.Call([&] { login_->Refused(*pass); });
  }
  // A plugin that prints the next number as its token each time, and notes that it ran.
  void UsePlugin(const std::string& expiry, const std::string& before = "") {
    ExecPlugin plugin;
    plugin.command = "sh";
    const std::string runs = folder_ + "/runs";
    plugin.arguments = {"-c", before + "echo x >> " + runs + "; n=$(wc -l < " + runs +
                                  "); printf '{\"kind\":\"ExecCredential\",\"status\":"
                                  "{\"token\":\"t%s\",\"expirationTimestamp\":\"%s\"}}' $n '" +
                                  expiry + "'"};
    access_.plugin = plugin;
  }

  std::string folder_;
  KubeAccess access_;
  LoopThread thread_;
  std::unique_ptr<KubeLogin> login_;
};

TEST_F(KubeLoginTest, ATokenFileIsReadAgainWhenItHasChanged) {
  access_.files.token = Write("token", "one\n");
  access_.identity.token = "one";
  OpenLogin();
  EXPECT_EQ(Authorization(), "Bearer one");
  Write("token", "two\n");
  std::this_thread::sleep_for(KubeLogin::kLookAgain + std::chrono::milliseconds(50));
  EXPECT_EQ(Authorization(), "Bearer two");
}

TEST_F(KubeLoginTest, ARefusalLooksAtOnce) {
  access_.files.token = Write("token", "one");
  access_.identity.token = "one";
  OpenLogin();
  EXPECT_EQ(Authorization(), "Bearer one");
  Write("token", "two");
  Refuse();
  EXPECT_EQ(Authorization(), "Bearer two");
}

TEST_F(KubeLoginTest, AFileThatIsGoneOrNonsenseChangesNothing) {
  access_.files.token = Write("token", "one");
  access_.files.authorities = Write("ca.crt", "");
  access_.identity.token = "one";
  OpenLogin();
  std::filesystem::remove(folder_ + "/token");
  Refuse();
  EXPECT_EQ(Authorization(), "Bearer one");
  Write("token", "two");
  Write("ca.crt", "this is no certificate");
  Refuse();
  EXPECT_EQ(Authorization(), "Bearer one");
  Write("ca.crt", "");
  Refuse();
  EXPECT_EQ(Authorization(), "Bearer two");
}

TEST_F(KubeLoginTest, APluginRunsWhenItIsNeededAndAgainWhenItsCredentialEnds) {
  UsePlugin("2000-01-01T00:00:00Z");
  OpenLogin();
  EXPECT_EQ(Authorization(), "Bearer t1");
  EXPECT_EQ(Authorization(), "Bearer t2");
}

TEST_F(KubeLoginTest, APluginsCredentialIsUsedWhileItLasts) {
  for (const char* expiry : {"", "2199-01-01T00:00:00Z", "2199-01-01T00:00:00.5+02:00"}) {
    std::filesystem::remove(folder_ + "/runs");
    UsePlugin(expiry);
    OpenLogin();
    EXPECT_EQ(Authorization(), "Bearer t1") << expiry;
    EXPECT_EQ(Authorization(), "Bearer t1") << expiry;
    // A refusal runs it again, but not at every request.
    Refuse();
    EXPECT_EQ(Authorization(), "Bearer t1") << expiry;
    CloseLogin();
  }
}

TEST_F(KubeLoginTest, APluginsFailureIsToldAndItIsTriedAgain) {
  UsePlugin("", "test -e " + folder_ + "/ready || exit 7; ");
  OpenLogin();
  EXPECT_THAT(Authorization(), HasSubstr("exec plugin sh"));
  Write("ready", "");
  EXPECT_EQ(Authorization(), "Bearer t1");
}

TEST_F(KubeLoginTest, IsClosedWhileAPluginRuns) {
  UsePlugin("", "touch " + folder_ + "/began; sleep 20; ");
  OpenLogin();
  std::thread closing([this] {
    while (!std::filesystem::exists(folder_ + "/began")) std::this_thread::yield();
    CloseLogin();
  });
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(Authorization(), HasSubstr("ended"));
  closing.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
}

TEST_F(KubeLoginTest, NobodyIsToldATokenOverPlainHttp) {
  access_.server = *Url::Parse("http://api.example:8001");
  access_.identity.token = "one";
  OpenLogin();
  EXPECT_EQ(Authorization(), "");
}

TEST_F(KubeLoginTest, RefusesATokenThatWouldBreakAHeader) {
  access_.identity.token = "s3cret\r\nx: y";
  const auto login = KubeLogin::Create(thread_.loop(), access_);
  ASSERT_FALSE(login);
  EXPECT_THAT(login.error().what, Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace fathom
