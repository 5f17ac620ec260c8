#include "codec/event_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

TEST(EventEndpoint, IsTcpOrIpc) {
  for (const char* endpoint : {"tcp://10.0.0.1:5557", "tcp://*:5557", "tcp://engine-1.svc:1",
                               "tcp://[::1]:65535", "ipc:///run/kv"}) {
    EXPECT_TRUE(CheckEventEndpoint(endpoint)) << endpoint;
  }
  for (const char* endpoint : {"",
                               "file:///etc/passwd",
                               "inproc://x",
                               "udp://h:1",
                               "pgm://h:1",
                               "ws://h:1",
                               "http://h:1",
                               "h:5557",
                               "tcp://",
                               "tcp://h",
                               "tcp://h:",
                               "tcp://:1",
                               "tcp://h:0",
                               "tcp://h:65536",
                               "tcp://a:1;b:2",
                               "tcp://h/x:1",
                               "tcp://a b:1",
                               "ipc://",
                               "TCP://h:1",
                               "tcp://h\n:1"}) {
    EXPECT_FALSE(CheckEventEndpoint(endpoint)) << endpoint;
  }
  EXPECT_FALSE(CheckEventEndpoint("ipc:///" + std::string(600, 'x')));
}

TEST(EventEndpoint, IsShownWithoutControlCharactersAndWithWhatToWrite) {
  const auto wrong = CheckEventEndpoint("tcp://h\x1b[2J:1");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().blame, Blame::kCaller);
  EXPECT_EQ(wrong.error().what,
            "'tcp://h?[2J:1' is not an endpoint: write tcp://HOST:PORT or ipc://PATH");
}

TEST(EventEndpoint, HasAHostAndAPort) {
  const auto parts = TcpEventEndpoint::Parse("tcp://[fe80::1]:5557");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->host, "[fe80::1]");
  EXPECT_EQ(parts->port, 5557);
  EXPECT_FALSE(TcpEventEndpoint::Parse("ipc:///run/kv"));
}

}  // namespace
}  // namespace fathom
