#include "config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

WorkerEntry Worker(std::string url, std::string origin) {
  WorkerEntry entry;
  entry.url = std::move(url);
  entry.origin = std::move(origin);
  return entry;
}

void SetText(Settings& settings, std::string_view name, std::string value, std::string origin) {
  settings.Set(*FindOption(settings.command(), name), std::move(value), std::move(origin));
}

std::string Problem(const Result<>& result) { return result ? "accepted" : result.error().what; }

TEST(Settings, StartAsTheDefaultsOfTheirCommand) {
  const Settings serve(Command::kServe);
  EXPECT_EQ(serve.Text("host"), "127.0.0.1");
  EXPECT_EQ(serve.Integer("port"), 8000);
  EXPECT_EQ(serve.Choice("router-mode"), "kv");
  EXPECT_EQ(serve.Time("session-affinity-ttl"), minutes(10));
  EXPECT_EQ(serve.Time("upstream-keep-alive-timeout"), seconds(4));
  EXPECT_EQ(serve.Bytes("max-body-size"), uint64_t{192} << 20);
  EXPECT_DOUBLE_EQ(serve.Number("retry-budget"), 0.2);
  EXPECT_FALSE(serve.Flag("log-requests"));
  EXPECT_EQ(serve.Secret("admin-key"), "");
  EXPECT_THAT(serve.Secrets("api-key"), IsEmpty());
  EXPECT_THAT(serve.List("worker-urls"), IsEmpty());
  EXPECT_EQ(serve.OriginOf("port"), "default");

  EXPECT_EQ(Settings(Command::kMock).Integer("port"), 8100);
  EXPECT_THAT(Settings(Command::kMock).List("model"), ElementsAre("mock-model"));
  EXPECT_EQ(Settings(Command::kDemo).Integer("port"), 0);
}

TEST(Settings, PassTheirOwnValidation) {
  for (const Command command : kCommands) {
    EXPECT_EQ(Problem(Validate(Settings(command))), "accepted") << NameOf(command);
  }
}

TEST(SettingsDeathTest, StopTheProcessForAWrongNameOrType) {
  const Settings settings(Command::kServe);
  EXPECT_DEATH(settings.Integer("prot"), "broken invariant");
  EXPECT_DEATH(settings.Text("port"), "broken invariant");
  EXPECT_DEATH(settings.Text("admin-key"), "broken invariant");
  EXPECT_DEATH(settings.List("api-key"), "broken invariant");
}

TEST(Settings, RefuseAWorkerThatIsNoUrl) {
  Settings settings(Command::kServe);
  EXPECT_EQ(
      Problem(settings.AddWorker(Worker("localhost:8000", "flag --worker-urls"))),
      "flag --worker-urls: worker 'localhost:8000' must start with http://, https://, dns+http://, "
      "dns+https://, k8s://, k8s-pods://, k8s-pool://, etcd://, etcds://, file://");
}

TEST(Settings, NameTheSchemeThatWasMeant) {
  Settings settings(Command::kServe);
  EXPECT_THAT(Problem(settings.AddWorker(Worker("k8s-pod://prod/app=a:1", "x"))),
              ::testing::EndsWith("etcds://, file://; did you mean k8s-pods://?"));
  EXPECT_EQ(Problem(settings.AddWorker(Worker("http://a:1,b:1", "x"))),
            "x: worker 'http://a:1,b:1' has a comma or a space: begin each worker with its scheme, "
            "as in http://a:8000,http://b:8000");
  for (const char* url :
       {"k8s://prod/vllm:http", "k8s-pods://prod/app=a,b in (c, d):1", "k8s-pool://prod/pool",
        "etcd://a:2379,b:2379/fleet", "etcds://a:2379/fleet", "file:///etc/workers.yaml"}) {
    EXPECT_EQ(Problem(settings.AddWorker(Worker(url, "x"))), "accepted");
  }
}

TEST(Settings, RefuseAWorkerTwice) {
  Settings settings(Command::kServe);
  ASSERT_TRUE(settings.AddWorker(Worker("http://a:1", "flag --worker-urls")));
  ASSERT_TRUE(settings.AddWorker(Worker("http://a:2", "flag --worker-urls")));
  EXPECT_EQ(Problem(settings.AddWorker(Worker("http://a:1/", "c.yaml:4"))),
            "c.yaml:4: worker 'http://a:1/' is already named by flag --worker-urls; remove one of "
            "them");
  EXPECT_EQ(settings.workers().size(), 2u);
}

TEST(Settings, NeedCertificateAndKeyTogether) {
  Settings settings(Command::kServe);
  SetText(settings, "tls-cert", "cert.pem", "flag --tls-cert");
  EXPECT_EQ(Problem(Validate(settings)),
            "--tls-cert (flag --tls-cert): needs --tls-key as well; set both or neither");
  SetText(settings, "tls-key", "key.pem", "default");
  EXPECT_EQ(Problem(Validate(settings)), "accepted");
  SetText(settings, "tls-cert", "", "default");
  EXPECT_EQ(Problem(Validate(settings)),
            "--tls-key (default): needs --tls-cert as well; set both or neither");
}

TEST(Settings, NeedAnAdminAddressWithAPort) {
  Settings settings(Command::kServe);
  for (const auto* wrong : {"8001", ":8001", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "h:x"}) {
    SetText(settings, "admin-listen", wrong, "c.yaml:2");
    EXPECT_EQ(Problem(Validate(settings)), std::string("--admin-listen (c.yaml:2): '") + wrong +
                                               "' must be HOST:PORT, e.g. 127.0.0.1:8001");
  }
  for (const auto* right : {"127.0.0.1:8001", "[::1]:8001", "localhost:0"}) {
    SetText(settings, "admin-listen", right, "c.yaml:2");
    EXPECT_EQ(Problem(Validate(settings)), "accepted") << right;
  }
}

TEST(Settings, NeedAHealthPathThatIsAPath) {
  Settings settings(Command::kServe);
  SetText(settings, "health-check-path", "health", "flag --health-check-path");
  EXPECT_EQ(Problem(Validate(settings)),
            "--health-check-path (flag --health-check-path): 'health' must start with /");
}

TEST(Settings, NeedAHost) {
  Settings settings(Command::kServe);
  SetText(settings, "host", "", "flag --host");
  EXPECT_EQ(Problem(Validate(settings)),
            "--host (flag --host): must not be empty; 0.0.0.0 listens on every interface");
}

}  // namespace
}  // namespace fathom
