// Against libzmq, and against peers whose every byte a test decides.
#include "io/zmtp/zmtp_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "io/net/zmq.h"
#include "io/zmtp/zmtp_listener.h"
#include "testing/loop_thread.h"
#include "testing/loopback_pair.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::string> FramesIn(const ZmqMessage& message) {
  return {message.begin(), message.end()};
}

class ZmtpClientTest : public testing::Test {
 public:
  using SocketPtr = std::unique_ptr<ZmqSocket>;
  using ClientPtr = std::unique_ptr<ZmtpClient>;

  SocketPtr Open(ZmqType type) { return *ZmqSocket::Open(context_, loop_, type, {}); }

  ClientPtr Follow(const std::string& endpoint, ZmtpClientOptions options = {}) {
    options.first_pause = milliseconds(10);
    auto client = ZmtpClient::Create(loop_, resolver_, budget_, endpoint, std::move(options));
    EXPECT_TRUE(client) << client.error().what;
    return *std::move(client);
  }

  TimePoint Soon(Duration time = seconds(20)) const { return loop_.now() + time; }

  Task<void> Expect(ZmtpClient& client, ZmtpNews news) {
    auto next = client.Next(Soon());
    const ZmtpNews got = co_await next;
    EXPECT_EQ(got, news);
  }

  // A subscription has reached the publisher once a published message arrives.
  Task<void> AwaitSubscription(ZmqSocket& publisher, ZmtpClient& client, std::string topic) {
    const ZmqMessage hello = {topic, "hello"};
    for (;;) {
      publisher.Send(hello);
      auto next = client.Next(Soon(milliseconds(20)));
      const ZmtpNews news = co_await next;
      if (news == ZmtpNews::kMessage) break;
    }
    for (;;) {  // the others that were sent
      auto next = client.Next(Soon(milliseconds(50)));
      const ZmtpNews news = co_await next;
      if (news != ZmtpNews::kMessage) break;
    }
  }

  ZmqContext context_;
  Resolver resolver_;
  ByteBudget budget_{8 << 20};
  Loop loop_;
};

TEST_F(ZmtpClientTest, ReceivesWhatLibzmqPublishesUnderItsTopic) {
  struct Script {
    static Task<void> Run(ZmtpClientTest& t) {
      const SocketPtr publisher = t.Open(ZmqType::kPub);
      const ClientPtr client = t.Follow(*publisher->Bind("tcp://127.0.0.1:0"), {.topic = "kv@a"});
      auto subscribing = t.AwaitSubscription(*publisher, *client, "kv@a");
      co_await subscribing;
      EXPECT_TRUE(client->connected());
      const ZmqMessage other = {"kv@b", "not for us"};
      const ZmqMessage ours = {"kv@a/model", std::string_view("\0\1", 2),
                               std::string(1 << 20, 'x')};
      publisher->Send(other);
      publisher->Send(ours);
      auto expecting = t.Expect(*client, ZmtpNews::kMessage);
      co_await expecting;
      EXPECT_EQ(FramesIn(client->message()), FramesIn(ours));
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

TEST_F(ZmtpClientTest, TalksToARouterOfLibzmq) {
  struct Script {
    static Task<void> Run(ZmtpClientTest& t) {
      const SocketPtr router = t.Open(ZmqType::kRouter);
      const ClientPtr client =
          t.Follow(*router->Bind("tcp://127.0.0.1:0"), {.type = ZmtpType::kDealer});
      auto connecting = t.Expect(*client, ZmtpNews::kConnected);
      co_await connecting;
      const ZmqMessage question = {"", "from 7"};
      auto sending = client->Send(question);
      const bool sent = co_await sending;
      EXPECT_TRUE(sent);
      ZmqMessage asked;
      const IoStatus heard = co_await router->Receive(asked, t.Soon());
      EXPECT_EQ(heard, IoStatus::kOk);
      EXPECT_EQ(asked.size(), 3u);
      if (asked.size() != 3) co_return;
      const ZmqMessage reply = {asked[0], "", "7", "payload"};
      EXPECT_TRUE(router->Send(reply));
      auto expecting = t.Expect(*client, ZmtpNews::kMessage);
      co_await expecting;
      EXPECT_EQ(FramesIn(client->message()), (std::vector<std::string>{"", "7", "payload"}));
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

TEST_F(ZmtpClientTest, ComesBackToAPublisherThatWentAndCameBack) {
  struct Script {
    static Task<void> Run(ZmtpClientTest& t) {
      SocketPtr publisher = t.Open(ZmqType::kPub);
      const std::string endpoint = *publisher->Bind("tcp://127.0.0.1:0");
      const ClientPtr client = t.Follow(endpoint);
      auto connecting = t.Expect(*client, ZmtpNews::kConnected);
      co_await connecting;
      publisher.reset();
      auto losing = t.Expect(*client, ZmtpNews::kDisconnected);
      co_await losing;
      EXPECT_EQ(client->fault(), ZmtpFault::kNone);
      publisher = t.Open(ZmqType::kPub);
      auto bound = publisher->Bind(endpoint);
      while (!bound) {
        co_await t.loop_.Sleep(milliseconds(1));
        bound = publisher->Bind(endpoint);
      }
      auto again = t.Expect(*client, ZmtpNews::kConnected);
      co_await again;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

TEST_F(ZmtpClientTest, CutsAPublisherBeyondTheLimitAndComesBack) {
  struct Script {
    static Task<void> Run(ZmtpClientTest& t) {
      const SocketPtr publisher = t.Open(ZmqType::kPub);
      const ClientPtr client =
          t.Follow(*publisher->Bind("tcp://127.0.0.1:0"), {.limits = {.message = 1000}});
      auto subscribing = t.AwaitSubscription(*publisher, *client, "t");
      co_await subscribing;
      const ZmqMessage large = {"t", std::string(1000, 'x')};
      publisher->Send(large);
      auto cutting = t.Expect(*client, ZmtpNews::kDisconnected);
      co_await cutting;
      EXPECT_EQ(client->fault(), ZmtpFault::kSize);
      EXPECT_EQ(t.budget_.used(), 0u);
      auto again = t.AwaitSubscription(*publisher, *client, "t");
      co_await again;
      const ZmqMessage fits = {"t", std::string(999, 'x')};
      publisher->Send(fits);
      auto expecting = t.Expect(*client, ZmtpNews::kMessage);
      co_await expecting;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

TEST_F(ZmtpClientTest, EndsAtItsDeadlineAndWhenItIsStopped) {
  struct Script {
    static Task<void> Stop(ZmtpClientTest& t, ZmtpClient& client) {
      co_await t.loop_.Sleep(milliseconds(10));
      client.Stop();
    }
    static Task<void> Run(ZmtpClientTest& t, std::string endpoint) {
      const ClientPtr client = t.Follow(endpoint);
      auto timing = client->Next(t.Soon(milliseconds(30)));
      const ZmtpNews late = co_await timing;
      EXPECT_EQ(late, ZmtpNews::kTimeout);
      auto stopping = Stop(t, *client);
      auto expecting = t.Expect(*client, ZmtpNews::kCancelled);
      co_await expecting;
      co_await stopping;
      auto after = t.Expect(*client, ZmtpNews::kCancelled);
      co_await after;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, "tcp://" + ClosedPort().ToString()); });
  const SocketPtr publisher = Open(ZmqType::kPub);
  const std::string silent = *publisher->Bind("tcp://127.0.0.1:0");
  struct Silent {
    static Task<void> Run(ZmtpClientTest& t, std::string endpoint) {
      const ClientPtr client = t.Follow(endpoint);
      auto connecting = t.Expect(*client, ZmtpNews::kConnected);
      co_await connecting;
      auto stopping = Script::Stop(t, *client);
      auto expecting = t.Expect(*client, ZmtpNews::kCancelled);
      co_await expecting;
      co_await stopping;
    }
  };
  RunToEnd(loop_, [&] { return Silent::Run(*this, silent); });
}

TEST_F(ZmtpClientTest, NamesAnEndpointThatIsNone) {
  for (const char* wrong : {"tcp:/x", "x", "", "tcp://host", "tcp://host:port", "http://host:80",
                            "tcp://host:0", "ipc://", "inproc://x", "file:///x"}) {
    const auto client = ZmtpClient::Create(loop_, resolver_, budget_, wrong, {});
    ASSERT_FALSE(client) << wrong;
    EXPECT_EQ(client.error().what,
              fmt::format("'{}' is not a ZeroMQ endpoint; write tcp://HOST:PORT", wrong));
  }
}

TEST_F(ZmtpClientTest, FollowsAPublisherAtAPath) {
  struct Script {
    static Task<void> Run(ZmtpClientTest& t, std::string endpoint) {
      const SocketPtr publisher = t.Open(ZmqType::kPub);
      const auto bound = publisher->Bind(endpoint);
      EXPECT_TRUE(bound);
      const ClientPtr client = t.Follow(endpoint);
      auto subscribing = t.AwaitSubscription(*publisher, *client, "t");
      co_await subscribing;
    }
  };
  const std::string endpoint = "ipc://@fathom-test-" + std::to_string(::getpid());
  RunToEnd(loop_, [&] { return Script::Run(*this, endpoint); });
}

// --- a bound subscriber

class ZmtpListenerTest : public ZmtpClientTest {
 public:
  std::unique_ptr<ZmtpListener> Bind(ZmtpListenerOptions options = {}) {
    auto bound = ZmtpListener::Bind(loop_, budget_, "tcp://127.0.0.1:0", std::move(options), log_);
    EXPECT_TRUE(bound) << bound.error().what;
    return *std::move(bound);
  }

  Task<void> Serve(ZmtpConnection& peer) {
    for (;;) {
      auto receiving = peer.Receive(kNever);
      const ZmtpNews news = co_await receiving;
      if (news != ZmtpNews::kMessage) co_return;
      heard_.push_back(peer.message().back());
    }
  }

  Task<void> Run(ZmtpListener& listener) {
    return listener.Run([this](ZmtpConnection& peer) { return Serve(peer); },
                        [this](ZmtpRefusal why, const Address&, ZmtpFault fault) {
                          refused_.emplace_back(why, fault);
                        });
  }

  Task<void> Until(std::function<bool()> so) {
    for (int i = 0; i < 20'000 && !so(); ++i) co_await loop_.Sleep(milliseconds(1));
    EXPECT_TRUE(so());
  }

  Log log_{STDERR_FILENO, LogLevel::kOff};
  std::vector<std::string> heard_;
  std::vector<std::pair<ZmtpRefusal, ZmtpFault>> refused_;
};

TEST_F(ZmtpListenerTest, HearsPublishersThatConnect) {
  struct Script {
    static Task<void> Run(ZmtpListenerTest& t) {
      const auto listener = t.Bind();
      auto running = t.Run(*listener);
      const SocketPtr one = t.Open(ZmqType::kPub);
      const SocketPtr other = t.Open(ZmqType::kPub);
      const std::string endpoint = "tcp://" + listener->address().ToString();
      EXPECT_TRUE(one->Connect(endpoint));
      EXPECT_TRUE(other->Connect(endpoint));
      auto coming = t.Until([&] { return listener->connected() == 2; });
      co_await coming;
      const ZmqMessage first = {"t", "one"};
      const ZmqMessage second = {"t", "other"};
      auto hearing = t.Until([&] {
        one->Send(first);
        other->Send(second);
        return std::ranges::find(t.heard_, "one") != t.heard_.end() &&
               std::ranges::find(t.heard_, "other") != t.heard_.end();
      });
      co_await hearing;
      listener->Stop();
      co_await running;
      EXPECT_EQ(listener->connected(), 0u);
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
  EXPECT_TRUE(refused_.empty());
}

TEST_F(ZmtpListenerTest, TurnsAwayAddressesThatAreNotAllowed) {
  struct Script {
    static Task<void> Run(ZmtpListenerTest& t) {
      const auto listener = t.Bind({.allow = {*AddressRange::Parse("10.0.0.0/8")}});
      auto running = t.Run(*listener);
      const SocketPtr one = t.Open(ZmqType::kPub);
      EXPECT_TRUE(one->Connect("tcp://" + listener->address().ToString()));
      auto refusing = t.Until([&] { return !t.refused_.empty(); });
      co_await refusing;
      listener->Stop();
      co_await running;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
  EXPECT_EQ(refused_[0], std::pair(ZmtpRefusal::kAddress, ZmtpFault::kNone));
}

TEST_F(ZmtpListenerTest, TurnsAwayPublishersWithoutTheKeyAndThoseAboveTheLimit) {
  struct Script {
    static Task<void> Run(ZmtpListenerTest& t) {
      const auto listener = t.Bind({.key = "secret", .most_peers = 1});
      auto running = t.Run(*listener);
      const SocketPtr one = t.Open(ZmqType::kPub);
      EXPECT_TRUE(one->Connect("tcp://" + listener->address().ToString()));
      auto refusing = t.Until([&] { return !t.refused_.empty(); });
      co_await refusing;
      listener->Stop();
      co_await running;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
  EXPECT_EQ(refused_[0].first, ZmtpRefusal::kKey);
}

TEST_F(ZmtpListenerTest, CutsAPeerThatNeverEndsAMessageAndStaysSmall) {
  struct Script {
    static Task<void> Run(ZmtpListenerTest& t) {
      const auto listener = t.Bind();
      auto running = t.Run(*listener);
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const Address& to = listener->address();
      EXPECT_EQ(::connect(fd, to.get(), to.size()), 0);
      std::string bytes = ZmtpGreeting("NULL", false);
      AppendZmtpCommand("READY", std::string("\x0bSocket-Type\0\0\0\3PUB", 19), bytes);
      for (int i = 0; i < 1100; ++i) AppendZmtpFrame(kZmtpMore, "x", bytes);
      EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
      auto refusing = t.Until([&] { return !t.refused_.empty(); });
      co_await refusing;
      ::close(fd);
      listener->Stop();
      co_await running;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
  EXPECT_EQ(refused_[0], std::pair(ZmtpRefusal::kLimit, ZmtpFault::kFrames));
}

// One peer holds most of the memory and says no more; another needs it.
TEST_F(ZmtpListenerTest, TakesTheMemoryOfTheLargestWhenAnotherNeedsIt) {
  struct Script {
    static int Dial(const Address& to, size_t bytes_of_a_frame) {
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      EXPECT_EQ(::connect(fd, to.get(), to.size()), 0);
      std::string bytes = ZmtpGreeting("NULL", false);
      AppendZmtpCommand("READY", std::string("\x0bSocket-Type\0\0\0\3PUB", 19), bytes);
      AppendZmtpFrame(kZmtpMore, std::string(bytes_of_a_frame, 'x'), bytes);
      std::thread([fd, bytes] { ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL); }).detach();
      return fd;
    }
    static Task<void> Run(ZmtpListenerTest& t) {
      const auto listener = t.Bind();
      auto running = t.Run(*listener);
      const int large = Dial(listener->address(), 4 << 20);
      auto holding = t.Until([&] { return t.budget_.used() == (4 << 20); });
      co_await holding;
      const int smaller = Dial(listener->address(), 3 << 20);
      auto refusing = t.Until([&] { return !t.refused_.empty() && t.budget_.used() == 3 << 20; });
      co_await refusing;
      EXPECT_EQ(listener->connected(), 1u);
      ::close(large);
      ::close(smaller);
      listener->Stop();
      co_await running;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
  EXPECT_EQ(refused_.size(), 1u);
  EXPECT_EQ(refused_[0], std::pair(ZmtpRefusal::kLimit, ZmtpFault::kMemory));
}

TEST_F(ZmtpListenerTest, IsNotDisturbedByGarbage) {
  struct Script {
    static Task<void> Run(ZmtpListenerTest& t) {
      const auto listener = t.Bind();
      auto running = t.Run(*listener);
      const std::string noise(100'000, '\xff');
      for (const std::string_view bytes :
           {std::string_view("GET / HTTP/1.1\r\n\r\n"), std::string_view(noise)}) {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const Address& to = listener->address();
        EXPECT_EQ(::connect(fd, to.get(), to.size()), 0);
        EXPECT_GT(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
        ::close(fd);
      }
      const SocketPtr publisher = t.Open(ZmqType::kPub);
      EXPECT_TRUE(publisher->Connect("tcp://" + listener->address().ToString()));
      const ZmqMessage message = {"t", "still here"};
      auto hearing = t.Until([&] {
        publisher->Send(message);
        return !t.heard_.empty() && t.refused_.size() == 2;
      });
      co_await hearing;
      listener->Stop();
      co_await running;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
  EXPECT_EQ(refused_[0].first, ZmtpRefusal::kProtocol);
}

}  // namespace
}  // namespace fathom
