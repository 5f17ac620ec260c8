#include "router/replicas/nats_carrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "testing/becomes.h"
#include "testing/log_file.h"
#include "testing/loop_thread.h"
#include "testing/nats_server.h"

namespace fathom {
namespace {

class NatsNode {
 public:
  NatsNode(const std::string& group, const std::string& id, const NatsServer& server)
      : carrier_(thread_.loop(), resolver_, log_.log(), group, id, {.urls = {server.url()}}) {
    thread_.Call([&] { carrier_.Start([this](std::string_view) { ++heard_; }); });
  }
  ~NatsNode() {
    thread_.Call([&] { carrier_.Stop(); });
    for (int i = 0; i < 3; ++i) thread_.Settle();  // what waits ends
    resolver_.Stop();
  }

  bool Publish() {
    bool sent = false;
    thread_.Call([&] { sent = carrier_.Publish("to all"); });
    return sent;
  }
  bool Send(std::string_view replica) {
    bool sent = false;
    thread_.Call([&] { sent = carrier_.Send(replica, "to one"); });
    return sent;
  }
  bool up() {
    bool up = false;
    thread_.Call([&] { up = carrier_.status().up; });
    return up;
  }
  int heard() const { return heard_; }
  const LogFile& log() const { return log_; }

 private:
  LogFile log_;
  Resolver resolver_;
  LoopThread thread_;
  NatsCarrier carrier_;
  std::atomic<int> heard_ = 0;
};

TEST(NatsCarrier, ReachesAllOrOneOfItsGroup) {
  if (!NatsServer::installed()) GTEST_SKIP() << "nats-server is not installed";
  NatsServer server;
  server.Start();
  NatsNode one("eu.prod", "router-1.eu", server);
  NatsNode two("eu.prod", "router-2.eu", server);
  NatsNode three("eu.prod", "router-2", server);
  NatsNode other("eu_prod", "router-2.eu", server);
  ASSERT_TRUE(Becomes([&] { return one.up() && two.up() && three.up() && other.up(); }));
  EXPECT_TRUE(one.Publish());
  EXPECT_TRUE(Becomes([&] { return two.heard() == 1 && three.heard() == 1; }));
  EXPECT_TRUE(one.Send("router-2.eu"));
  EXPECT_TRUE(Becomes([&] { return two.heard() == 2; }));
  EXPECT_TRUE(one.Publish());
  EXPECT_TRUE(Becomes([&] { return three.heard() == 2; }));
  EXPECT_EQ(one.heard(), 0);
  EXPECT_EQ(other.heard(), 0);
}

TEST(NatsCarrier, LogsOnceThatReplicasAreNotReachedAndOnceThatTheyAreAgain) {
  if (!NatsServer::installed()) GTEST_SKIP() << "nats-server is not installed";
  NatsServer server;
  NatsNode one("group", "one", server);
  EXPECT_TRUE(Becomes([&] { return one.log().Count("Replicas are not reached") == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  server.Start();
  EXPECT_TRUE(Becomes([&] { return one.log().Count("Replicas are reached again") == 1; }));
  EXPECT_EQ(one.log().Count("Replicas are not reached"), 1u);
  EXPECT_THAT(one.log().text(), testing::HasSubstr("no NATS server listens there"));
}

}  // namespace
}  // namespace fathom
