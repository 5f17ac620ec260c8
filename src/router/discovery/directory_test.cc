#include "router/discovery/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

namespace fathom {
namespace {

using ::testing::HasSubstr;

// The control loop never runs: no worker is probed.
class DirectoryTest : public testing::Test {
 protected:
  Result<std::shared_ptr<Worker>> Join(const std::string& url) {
    WorkerRequest request;
    request.url = url;
    return directory_.Join(request);
  }
  std::optional<std::string> Variable(const std::string& name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return std::nullopt;
    return found->second;
  }

  Loop control_;
  Resolver resolver_;
  Log log_{2, LogLevel::kOff};
  Fleet fleet_{BreakerOptions{}};
  Prober prober_{control_, resolver_, fleet_, ProbeOptions{}, log_};
  std::map<std::string, std::string> variables_;
  Directory directory_{fleet_, prober_, [this](const std::string& name) { return Variable(name); },
                       log_};
};

TEST_F(DirectoryTest, BringsAWorkerIntoTheFleetAndSaysHowToReachIt) {
  const auto worker = Join("http://Worker-1:8000/base/");
  ASSERT_TRUE(worker) << worker.error().what;
  EXPECT_EQ((*worker)->spec().url, "http://worker-1:8000/base");
  EXPECT_EQ((*worker)->spec().host_header, "worker-1:8000");
  EXPECT_EQ((*worker)->spec().base_path, "/base");
  const auto endpoint = directory_.Find((*worker)->id());
  ASSERT_NE(endpoint, nullptr);
  EXPECT_EQ(endpoint->url.port, 8000);
  EXPECT_EQ(endpoint->tls, nullptr);
  EXPECT_NE(fleet_.Current()->Find((*worker)->id()), nullptr);
}

TEST_F(DirectoryTest, RefusesAUrlThatIsNone) {
  for (const char* url :
       {"", "worker:8000", "ftp://w", "http://", "http://w:99999", "http://u@w"}) {
    const auto worker = Join(url);
    ASSERT_FALSE(worker) << url;
    EXPECT_EQ(worker.error().blame, Blame::kCaller);
  }
  EXPECT_TRUE(fleet_.Current()->members().empty());
}

TEST_F(DirectoryTest, RefusesAHostThatCannotBeLookedUp) {
  for (const std::string& host :
       {std::string("a..b"), std::string("127.1"), std::string("10.0.0.256"), std::string(64, 'x'),
        std::string(100'000, 'x')}) {
    const auto worker = Join("http://" + host + ":1");
    ASSERT_FALSE(worker) << host.substr(0, 100);
    EXPECT_EQ(worker.error().blame, Blame::kCaller);
    EXPECT_THAT(worker.error().what, HasSubstr("neither an IP address nor a name"));
    EXPECT_LT(worker.error().what.size(), 400u);
  }
}

TEST_F(DirectoryTest, KnowsTheSameWorkerInAnotherSpelling) {
  ASSERT_TRUE(Join("http://w:80"));
  const auto again = Join("HTTP://W/");
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().what, HasSubstr("already"));
  EXPECT_EQ(fleet_.Current()->members().size(), 1u);
}

TEST_F(DirectoryTest, ReadsTheKeyFromTheEnvironmentAndMissesItByName) {
  WorkerRequest request;
  request.url = "http://w:1";
  request.api_key_env = "W_KEY";
  request.from = WorkerRequest::From::kOperator;
  const auto missing = directory_.Join(request);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().what, HasSubstr("W_KEY"));
  variables_["W_KEY"] = "";
  EXPECT_FALSE(directory_.Join(request)) << "set to nothing is not set";
  EXPECT_TRUE(fleet_.Current()->members().empty());
  variables_["W_KEY"] = "s3cret";
  const auto joined = directory_.Join(request);
  ASSERT_TRUE(joined);
  EXPECT_EQ((*joined)->spec().api_key, "s3cret");
}

TEST_F(DirectoryTest, LetsRequestsFromOutsideNameListedVariablesAlone) {
  Directory directory(fleet_, prober_, [this](const std::string& name) { return Variable(name); },
                      log_, nullptr, nullptr, {"GPU_KEY"});
  variables_ = {{"GPU_KEY", "for engines"}, {"AWS_SECRET_ACCESS_KEY", "for the operator"}};
  WorkerRequest request;
  request.url = "http://w:1";
  request.api_key_env = "AWS_SECRET_ACCESS_KEY";
  const auto refused = directory.Join(request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("--worker-key-env"));
  request.api_key_env = "NO_SUCH_VARIABLE";
  EXPECT_THAT(directory.Join(request).error().what, HasSubstr("--worker-key-env"))
      << "whether a variable exists does not show";
  request.api_key_env = "GPU_KEY";
  const auto joined = directory.Join(request);
  ASSERT_TRUE(joined) << joined.error().what;
  EXPECT_EQ((*joined)->spec().api_key, "for engines");
}

TEST_F(DirectoryTest, RefusesEventEndpointsThatNoEngineHas) {
  for (const char* endpoint : {"file:///etc/passwd", "inproc://x", "udp://h:1", "h:5557", ""}) {
    WorkerRequest request;
    request.url = "http://w:1";
    request.kv_events = endpoint;
    const auto events = directory_.Join(request);
    ASSERT_FALSE(events) << endpoint;
    EXPECT_THAT(events.error().what, HasSubstr("kv_events"));
    request.kv_events.reset();
    request.kv_events_replay = endpoint;
    const auto replay = directory_.Join(request);
    ASSERT_FALSE(replay) << endpoint;
    EXPECT_THAT(replay.error().what, HasSubstr("kv_events_replay"));
  }
  WorkerRequest request;
  request.url = "http://w:1";
  request.kv_events = "tcp://w:5557";
  request.kv_events_replay = "ipc:///run/replay";
  EXPECT_TRUE(directory_.Join(request));
}

TEST_F(DirectoryTest, OpensNoDeviceAsACertificate) {
  WorkerRequest request;
  request.url = "https://w:1";
  request.ca_file = "/dev/null";
  const auto refused = directory_.Join(request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("not a regular file"));
}

TEST_F(DirectoryTest, WantsAnAuthorityForHttpsWorkersOnlyAndOneThatExists) {
  WorkerRequest request;
  request.url = "http://w:1";
  request.ca_file = "/nowhere.pem";
  const auto plain = directory_.Join(request);
  ASSERT_FALSE(plain);
  EXPECT_THAT(plain.error().what, HasSubstr("ca_file"));
  request.url = "https://w:1";
  const auto missing = directory_.Join(request);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().what, HasSubstr("/nowhere.pem"));
  EXPECT_TRUE(fleet_.Current()->members().empty());
  request.ca_file.clear();
  const auto joined = directory_.Join(request);
  ASSERT_TRUE(joined) << joined.error().what;
  EXPECT_NE(directory_.Find((*joined)->id())->tls, nullptr);
}

TEST_F(DirectoryTest, PlansAWorkerAtAnAddressOfItsHost) {
  WorkerRequest request;
  request.url = "https://[fd00::1]:8443/base";
  request.host_name = "w";
  const auto plan = directory_.Plan(request);
  ASSERT_TRUE(plan) << plan.error().what;
  EXPECT_TRUE(fleet_.Current()->members().empty()) << "a plan is not a worker";
  const auto worker = directory_.Join(*plan);
  ASSERT_TRUE(worker);
  EXPECT_EQ((*worker)->spec().url, "https://[fd00::1]:8443/base");
  EXPECT_EQ((*worker)->spec().host_header, "w:8443");
  const auto endpoint = directory_.Find((*worker)->id());
  EXPECT_EQ(endpoint->url.host, "fd00::1");
  EXPECT_EQ(endpoint->Called().ToString(), "https://w:8443/base");
  EXPECT_EQ(endpoint->tls, plan->endpoint.tls);
  request.url = "https://[fd00::2]:8443/base";
  EXPECT_EQ(directory_.Plan(request)->endpoint.tls, plan->endpoint.tls) << "read once for both";
}

TEST_F(DirectoryTest, LetsAWorkerGoOnceAndComeBack) {
  const WorkerId id = (*Join("http://w:1"))->id();
  EXPECT_TRUE(directory_.Leave(id));
  EXPECT_FALSE(directory_.Leave(id));
  EXPECT_EQ(directory_.Find(id), nullptr);
  EXPECT_TRUE(Join("http://w:1"));
  EXPECT_NE(directory_.Find(id), nullptr);
}

// Admin calls come in on several loops at once.
TEST_F(DirectoryTest, CanReachEveryWorkerOfTheFleetHoweverJoiningAndLeavingCross) {
  const WorkerId id = WorkerId::OfUrl("http://w:1");
  constexpr int kRounds = 3000;
  std::atomic<int> round{0};
  std::atomic<int> left{0};
  std::thread leaver([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (round < i) std::this_thread::yield();
      directory_.Leave(id);
      left = i;
    }
  });
  int unreachable = 0;
  for (int i = 1; i <= kRounds; ++i) {
    static_cast<void>(Join("http://w:1"));
    round = i;
    static_cast<void>(Join("http://w:1"));
    while (left < i) std::this_thread::yield();
    unreachable += fleet_.Current()->Find(id) != nullptr && directory_.Find(id) == nullptr;
  }
  leaver.join();
  EXPECT_EQ(unreachable, 0);
}

}  // namespace
}  // namespace fathom
