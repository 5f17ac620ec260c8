#include "lint/endpoint.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(Endpoint, BindsWhereThereIsAStarOrTwoColonsOrNoNetwork) {
  for (const char* text : {"tcp://*:5557", "tcp://[::]:5557", "ipc:///tmp/kv", "inproc://kv"}) {
    EXPECT_TRUE(Endpoint::Parse(text)->binds()) << text;
  }
  for (const char* text : {"tcp://0.0.0.0:5557", "tcp://127.0.0.1:5557", "tcp://a.example:5557"}) {
    EXPECT_FALSE(Endpoint::Parse(text)->binds()) << text;
  }
}

TEST(Endpoint, HasItsPort) {
  EXPECT_EQ(Endpoint::Parse("tcp://*:5557")->port, 5557);
  EXPECT_EQ(Endpoint::Parse("tcp://*:65536")->port, std::nullopt);
  EXPECT_EQ(Endpoint::Parse("tcp://*")->port, std::nullopt);
  EXPECT_EQ(Endpoint::Parse("ipc:///tmp/kv")->port, std::nullopt);
}

TEST(Endpoint, KeepsAPortThatIsAVariable) {
  const auto endpoint = Endpoint::Parse("tcp://0.0.0.0:${EVENTS:-5557}");
  EXPECT_TRUE(endpoint->any_address());
  EXPECT_EQ(endpoint->port, std::nullopt);
  EXPECT_EQ(endpoint->Bound(), "tcp://*:${EVENTS:-5557}");
  EXPECT_EQ(Endpoint::Parse("tcp://[::]:6000")->Bound(), "tcp://*:6000");
}

TEST(Endpoint, IsNothingWithoutATransport) {
  EXPECT_FALSE(Endpoint::Parse("0.0.0.0:5557"));
  EXPECT_FALSE(Endpoint::Parse(""));
}

}  // namespace
}  // namespace fathom
