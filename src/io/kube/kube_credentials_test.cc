// A follower over TLS, whose token and authorities are replaced in their files while it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/file.h"
#include "testing/kube_follow_rig.h"
#include "testing/loopback_server.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// An API without objects that lets one token in.
class TokenApi final : public HttpHandler {
 public:
  Task<void> Handle(ServerConnection& connection) override {
    const Header* const key = connection.head().headers.Find("authorization");
    const std::string shown(key == nullptr ? "" : key->value);
    Answer answer{.status = 401, .body = "{}"};
    {
      const std::lock_guard lock(mutex_);
      if (shown_.empty() || shown_.back() != shown) shown_.push_back(shown);
      if (shown == wanted_)
        answer = Page(connection.head().target);
      else if (on_refusal_)
        on_refusal_();
    }
    auto responding = connection.Respond(answer);
    co_await responding;
  }
  Answer Refuse(const RequestProblem& problem) override { return {.status = problem.status}; }

  // Each call of `on_refusal` comes before the answer that refuses.
  void Want(std::string authorization, std::function<void()> on_refusal = nullptr) {
    const std::lock_guard lock(mutex_);
    wanted_ = std::move(authorization);
    on_refusal_ = std::move(on_refusal);
  }
  // What was shown, without what is repeated.
  std::vector<std::string> shown() {
    const std::lock_guard lock(mutex_);
    return shown_;
  }

 private:
  static Answer Page(std::string_view target) {
    const bool watch = target.contains("watch=true");
    return {.body = watch ? "" : R"({"metadata":{"resourceVersion":"1"},"items":[]})"};
  }

  std::mutex mutex_;
  std::string wanted_;
  std::function<void()> on_refusal_;
  std::vector<std::string> shown_;
};

class KubeCredentialsTest : public testing::Test {
 public:
  KubeCredentialsTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as the program does
    char name[] = "/tmp/fathom_kube_credentials_test.XXXXXX";
    folder_ = ::mkdtemp(name);
    for (const char* who : {"ours", "other"}) {
      const std::string command = fmt::format(
          "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
          "-subj /CN={0} -addext subjectAltName=IP:127.0.0.1 -keyout {1}/{0}.key "
          "-out {1}/{0}.pem >/dev/null 2>&1",
          who, folder_);
      CHECK(std::system(command.c_str()) == 0);
    }
    const auto tls = TlsServerContext::Load(folder_ + "/ours.pem", folder_ + "/ours.key");
    CHECK(tls.has_value());
    server_ = std::make_unique<LoopbackServer>(thread_, api_, ServerOptions(), 1000, *tls);
  }
  ~KubeCredentialsTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/new") << text;
    std::filesystem::rename(folder_ + "/new", folder_ + "/" + name);
  }
  KubeAccess PodAccess(const std::string& authority) const {
    Write("token", "one\n");
    Write("ca.crt", *ReadFile(folder_ + "/" + authority + ".pem"));
    KubeSurroundings around;
    around.service_host = "127.0.0.1";
    around.service_port = std::to_string(server_->address().port());
    around.account_folder = folder_;
    return *FindKubeAccess({}, around);
  }

  std::string folder_;
  TokenApi api_;
  LoopThread thread_;
  std::unique_ptr<LoopbackServer> server_;
};

constexpr KubeResource kPodResource = {"", "v1", "pods", "Pod"};

TEST_F(KubeCredentialsTest, ATokenThatWasReplacedIsShownAtOnce) {
  api_.Want("Bearer two", [this] { Write("token", "two\n"); });
  KubeFollowRig rig(PodAccess("ours"), {.resource = kPodResource, .network_namespace = "ml"});
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("listed"));
  EXPECT_THAT(rig.recorder.lines(), ElementsAre("listed"));
  EXPECT_THAT(api_.shown(), ElementsAre("Bearer one", "Bearer two"));
}

TEST_F(KubeCredentialsTest, ATokenThatIsNotReplacedIsToldWithoutIt) {
  api_.Want("Bearer two");
  KubeFollowRig rig(PodAccess("ours"), {.resource = kPodResource, .network_namespace = "ml"});
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("trouble 401"));
  EXPECT_THAT(rig.recorder.words(), HasSubstr("cannot list pods in namespace ml: 401"));
  EXPECT_THAT(rig.recorder.words(), Not(HasSubstr("one")));
  Write("token", "two\n");
  EXPECT_TRUE(rig.recorder.WaitFor("listed"));
}

TEST_F(KubeCredentialsTest, AuthoritiesThatWereReplacedAreTrusted) {
  api_.Want("Bearer one");
  KubeFollowRig rig(PodAccess("other"), {.resource = kPodResource, .network_namespace = "ml"});
  rig.Start();
  ASSERT_TRUE(rig.recorder.WaitFor("trouble 0"));
  EXPECT_THAT(api_.shown(), testing::IsEmpty());
  Write("ca.crt", *ReadFile(folder_ + "/ours.pem"));
  EXPECT_TRUE(rig.recorder.WaitFor("listed"));
}

}  // namespace
}  // namespace fathom
