#include "diagnose/lint/endpoint.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(PublisherEndpoint, BindsWhereThereIsAStarOrTwoColonsOrNoNetwork) {
  for (const char* text : {"tcp://*:5557", "tcp://[::]:5557", "ipc:///tmp/kv", "inproc://kv"}) {
    EXPECT_TRUE(PublisherEndpoint::Parse(text)->binds()) << text;
  }
  for (const char* text : {"tcp://0.0.0.0:5557", "tcp://127.0.0.1:5557", "tcp://a.example:5557"}) {
    EXPECT_FALSE(PublisherEndpoint::Parse(text)->binds()) << text;
  }
}

TEST(PublisherEndpoint, HasItsPort) {
  EXPECT_EQ(PublisherEndpoint::Parse("tcp://*:5557")->port, 5557);
  EXPECT_EQ(PublisherEndpoint::Parse("tcp://*:65536")->port, std::nullopt);
  EXPECT_EQ(PublisherEndpoint::Parse("tcp://*")->port, std::nullopt);
  EXPECT_EQ(PublisherEndpoint::Parse("ipc:///tmp/kv")->port, std::nullopt);
}

TEST(PublisherEndpoint, KeepsAPortThatIsAVariable) {
  const auto endpoint = PublisherEndpoint::Parse("tcp://0.0.0.0:${EVENTS:-5557}");
  EXPECT_TRUE(endpoint->any_address());
  EXPECT_EQ(endpoint->port, std::nullopt);
  EXPECT_EQ(endpoint->Bound(), "tcp://*:${EVENTS:-5557}");
  EXPECT_EQ(PublisherEndpoint::Parse("tcp://[::]:6000")->Bound(), "tcp://*:6000");
}

TEST(PublisherEndpoint, IsNothingWithoutATransport) {
  EXPECT_FALSE(PublisherEndpoint::Parse("0.0.0.0:5557"));
  EXPECT_FALSE(PublisherEndpoint::Parse(""));
}

}  // namespace
}  // namespace fathom
