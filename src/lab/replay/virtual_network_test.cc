#include "lab/replay/virtual_network.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace fathom {
namespace {

using std::chrono::milliseconds;

class VirtualNetworkTest : public testing::Test {
 protected:
  void Begin(const VirtualNetworkOptions& options) {
    network_.emplace(options, std::vector<std::string>{"a", "b", "c"}, 1);
    for (size_t i = 0; i < heard_.size(); ++i) {
      network_->carrier(i).Start(
          [this, i](std::string_view bytes) { heard_[i].emplace_back(bytes); });
    }
  }

  std::optional<VirtualNetwork> network_;
  std::array<std::vector<std::string>, 3> heard_;
};

TEST_F(VirtualNetworkTest, CarriesToAllOthersOrToOne) {
  Begin({});
  EXPECT_TRUE(network_->carrier(0).Publish("all"));
  EXPECT_TRUE(network_->carrier(1).Send("c", "one"));
  EXPECT_FALSE(network_->carrier(1).Send("d", "none"));
  network_->Deliver(TimePoint{});
  EXPECT_TRUE(heard_[0].empty());
  EXPECT_EQ(heard_[1], std::vector<std::string>{"all"});
  EXPECT_EQ(heard_[2], (std::vector<std::string>{"all", "one"}));
}

TEST_F(VirtualNetworkTest, TakesItsTime) {
  Begin({.delay = milliseconds(10), .jitter = 0.5});
  const TimePoint sent{milliseconds(100)};
  network_->SetNow(sent);
  network_->carrier(0).Publish("late");
  EXPECT_GE(network_->next(), sent + milliseconds(5));
  network_->Deliver(sent + milliseconds(4));
  EXPECT_TRUE(heard_[1].empty());
  network_->Deliver(sent + milliseconds(15));
  EXPECT_EQ(heard_[1].size() + heard_[2].size(), 2u);
  EXPECT_EQ(network_->next(), kNever);
}

TEST_F(VirtualNetworkTest, LosesItsShare) {
  Begin({.loss = 0.1});
  for (int i = 0; i < 2000; ++i) network_->carrier(0).Publish("perhaps");
  network_->Deliver(TimePoint{});
  EXPECT_NEAR(static_cast<double>(heard_[1].size()), 1800, 80);
}

}  // namespace
}  // namespace fathom
