#include "router/replicas/kube_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "testing/becomes.h"
#include "testing/kube_api.h"
#include "testing/kube_follow_rig.h"
#include "testing/loop_thread.h"

namespace fathom {
namespace {

using PeerSet = std::set<std::string>;

class KubePeersTest : public testing::Test {
 public:
  void Follow() {
    thread_.Call([this] {
      client_ = *KubeClient::Create(thread_.loop(), resolver_, KubeFollowRig::AccessTo(api_.url()));
      peers_ = std::make_unique<KubePeers>(
          thread_.loop(), *client_, "ml", "fathom-peers", 7000,
          [this](PeerSet found) {
            const std::lock_guard lock(mutex_);
            found_ = std::move(found);
            problem_.clear();
          },
          [this](const std::string& problem) {
            const std::lock_guard lock(mutex_);
            problem_ = problem;
          },
          QuickOptions());
      peers_->Start();
    });
  }
  void TearDown() override {
    thread_.Call([this] { peers_.reset(); });
    thread_.Settle();
    thread_.Call([this] { client_.reset(); });
    thread_.Settle();
    thread_.Stop();
    resolver_.Stop();
  }
  bool Finds(const PeerSet& wanted) {
    return Becomes([&] {
      const std::lock_guard lock(mutex_);
      return found_ == wanted && problem_.empty();
    });
  }

 protected:
  KubeApi api_;
  Resolver resolver_;
  LoopThread thread_;
  std::unique_ptr<KubeClient> client_;
  std::unique_ptr<KubePeers> peers_;
  std::mutex mutex_;
  PeerSet found_ = {"nothing was told"};
  std::string problem_;
};

TEST_F(KubePeersTest, FollowsTheEndpointsOfAServiceReadyOrNot) {
  api_.Put("one", R"("addressType": "IPv4", "endpoints": [
      {"addresses": ["10.0.0.1"], "conditions": {"ready": true}},
      {"addresses": ["10.0.0.2"], "conditions": {"ready": false}}, {"addresses": []},
      {"addresses": ["not an address"]}, 7])");
  api_.Put("two", R"("addressType": "IPv6", "endpoints": [{"addresses": ["fd00::1"]}])");
  Follow();
  EXPECT_TRUE(Finds({"10.0.0.1:7000", "10.0.0.2:7000", "[fd00::1]:7000"}));
  api_.Put("one", R"("endpoints": [{"addresses": ["10.0.0.3"]}])");
  EXPECT_TRUE(Finds({"10.0.0.3:7000", "[fd00::1]:7000"}));
  api_.Delete("two");
  EXPECT_TRUE(Finds({"10.0.0.3:7000"}));
  api_.Put("one", R"("endpoints": null)");
  EXPECT_TRUE(Finds({}));
}

}  // namespace
}  // namespace fathom
