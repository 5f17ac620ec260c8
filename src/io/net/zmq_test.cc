#include "io/net/zmq.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "io/net/task.h"
#include "testing/loop_thread.h"
#include "testing/loopback_pair.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string PortOf(const std::string& endpoint) { return endpoint.substr(endpoint.rfind(':') + 1); }

std::string Dial(const std::string& bound) { return "tcp://127.0.0.1:" + PortOf(bound); }

std::vector<std::string> Frames(const ZmqMessage& message) {
  return {message.begin(), message.end()};
}

class ZmqTest : public testing::Test {
 public:
  using SocketPtr = std::unique_ptr<ZmqSocket>;

  SocketPtr Open(ZmqType type, const ZmqOptions& options = {}) {
    auto opened = ZmqSocket::Open(context_, loop_, type, options);
    EXPECT_TRUE(opened) << opened.error().what;
    return *std::move(opened);
  }

  std::string Bind(ZmqSocket& socket, const std::string& endpoint = "tcp://127.0.0.1:0") {
    const auto bound = socket.Bind(endpoint);
    EXPECT_TRUE(bound) << bound.error().what;
    return bound.value_or("");
  }

  void Connect(ZmqSocket& socket, const std::string& endpoint) {
    const auto connected = socket.Connect(endpoint);
    EXPECT_TRUE(connected) << connected.error().what;
  }

  TimePoint Soon(Duration time = seconds(20)) { return loop_.now() + time; }

  Task<void> Receive(ZmqSocket& socket, ZmqMessage& message, IoStatus& status,
                     Duration patience = seconds(20)) {
    status = co_await socket.Receive(message, Soon(patience));
  }

  Task<void> Until(std::function<bool()> so) {
    for (int i = 0; i < 20'000 && !so(); ++i) co_await loop_.Sleep(milliseconds(1));
    EXPECT_TRUE(so());
  }

  // A subscription has reached the publisher once a published message arrives.
  Task<void> AwaitSubscription(ZmqSocket& publisher, ZmqSocket& subscriber, std::string topic) {
    ZmqMessage message;
    const ZmqMessage hello = {topic, "hello"};
    do {
      publisher.Send(hello);
      co_await loop_.Sleep(milliseconds(1));
    } while (!subscriber.TryReceive(message));
    co_await loop_.Sleep(milliseconds(20));
    while (subscriber.TryReceive(message)) {
    }
  }

  ZmqContext context_;
  Loop loop_;
};

TEST_F(ZmqTest, GivesSubscribersWhatBeginsWithTheirTopic) {
  std::vector<std::string> got;
  struct Script {
    static Task<void> Run(ZmqTest& t, std::vector<std::string>& got) {
      const SocketPtr publisher = t.Open(ZmqType::kPub);
      const SocketPtr subscriber = t.Open(ZmqType::kSub);
      subscriber->Subscribe("kv@a");
      const std::string endpoint = t.Bind(*publisher);
      t.Connect(*subscriber, endpoint);
      auto subscribing = t.AwaitSubscription(*publisher, *subscriber, "kv@a");
      co_await subscribing;
      const ZmqMessage other = {"kv@b", "not for us"};
      const ZmqMessage ours = {"kv@a/model", std::string_view("\0\1", 2), "payload"};
      EXPECT_TRUE(publisher->Send(other));
      EXPECT_TRUE(publisher->Send(ours));
      ZmqMessage message;
      const IoStatus status = co_await subscriber->Receive(message, t.Soon());
      EXPECT_EQ(status, IoStatus::kOk);
      EXPECT_FALSE(message.truncated());
      got = Frames(message);
      EXPECT_FALSE(subscriber->TryReceive(message));
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, got); });
  EXPECT_EQ(got, (std::vector<std::string>{"kv@a/model", std::string("\0\1", 2), "payload"}));
}

// Sent from another thread without pacing, so that the receiver sleeps and wakes all the time.
TEST_F(ZmqTest, LosesNoWakeUpInAHundredThousandMessages) {
  constexpr uint64_t kMessages = 100'000;
  LoopThread sender;
  SocketPtr publisher;
  std::string endpoint;
  sender.Call([&] {
    publisher = *ZmqSocket::Open(context_, sender.loop(), ZmqType::kPub, {.send_limit = 0});
    endpoint = *publisher->Bind("tcp://127.0.0.1:0");
  });
  struct Script {
    static void SendAll(LoopThread& sender, ZmqSocket& publisher, uint64_t from) {
      for (uint64_t i = from; i < from + 100; ++i) {
        const ZmqMessage message = {"t", std::string_view(reinterpret_cast<char*>(&i), 8)};
        publisher.Send(message);
      }
      if (from % 1000 == 0) std::this_thread::sleep_for(milliseconds(1));
      if (from + 100 == kMessages) return;
      sender.loop().Post([&sender, &publisher, from] { SendAll(sender, publisher, from + 100); });
    }
    static Task<void> Run(ZmqTest& t, LoopThread& sender, ZmqSocket& publisher,
                          const std::string& endpoint) {
      const SocketPtr subscriber = t.Open(ZmqType::kSub, {.receive_limit = 0});
      subscriber->Subscribe("");
      t.Connect(*subscriber, endpoint);
      while (subscriber->connects() == 0) co_await t.loop_.Sleep(milliseconds(1));
      co_await t.loop_.Sleep(milliseconds(100));  // lets the subscription arrive
      sender.loop().Post([&] { SendAll(sender, publisher, 0); });
      ZmqMessage message;
      for (uint64_t i = 0; i < kMessages; ++i) {
        const IoStatus status = co_await subscriber->Receive(message, t.Soon());
        EXPECT_EQ(status, IoStatus::kOk) << "after " << i;
        if (status != IoStatus::kOk) co_return;
        uint64_t number = 0;
        std::memcpy(&number, message[1].data(), 8);
        EXPECT_EQ(number, i);
      }
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, sender, *publisher, endpoint); });
  sender.Call([&] { publisher.reset(); });
}

// The loop is blocked until the descriptor is readable. The send then resets the descriptor before
// the loop sees it, and no other event follows.
TEST_F(ZmqTest, WakesAReceiverWhoseNewsASendHasTaken) {
  IoStatus status = IoStatus::kError;
  struct Script {
    static Task<void> Run(ZmqTest& t, IoStatus& status) {
      const SocketPtr router = t.Open(ZmqType::kRouter);
      const SocketPtr dealer = t.Open(ZmqType::kDealer);
      t.Connect(*dealer, t.Bind(*router));
      const ZmqMessage question = {"question"};
      EXPECT_TRUE(dealer->Send(question));
      ZmqMessage asked;
      const IoStatus heard = co_await router->Receive(asked, t.Soon());
      EXPECT_EQ(heard, IoStatus::kOk);
      ZmqMessage answer;
      auto receiving = t.Receive(*dealer, answer, status, seconds(5));
      co_await t.loop_.Sleep(milliseconds(20));
      EXPECT_TRUE(router->Send(asked));
      std::this_thread::sleep_for(milliseconds(100));
      EXPECT_TRUE(dealer->Send(question));
      co_await receiving;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, status); });
  EXPECT_EQ(status, IoStatus::kOk);
}

TEST_F(ZmqTest, CarriesADialogueOfDealerAndRouter) {
  std::vector<std::string> answer;
  struct Script {
    static Task<void> Run(ZmqTest& t, std::vector<std::string>& answer) {
      const SocketPtr router = t.Open(ZmqType::kRouter);
      const SocketPtr dealer = t.Open(ZmqType::kDealer);
      t.Connect(*dealer, t.Bind(*router));
      const ZmqMessage question = {"", "from 7"};
      EXPECT_TRUE(dealer->Send(question));
      ZmqMessage asked;
      IoStatus status = co_await router->Receive(asked, t.Soon());
      EXPECT_EQ(status, IoStatus::kOk);
      EXPECT_EQ(asked.size(), 3u);
      const ZmqMessage reply = {asked[0], "", "7", "payload"};
      EXPECT_TRUE(router->Send(reply));
      const ZmqMessage stranger = {"nobody", "", "7"};
      EXPECT_FALSE(router->Send(stranger));
      ZmqMessage heard;
      status = co_await dealer->Receive(heard, t.Soon());
      EXPECT_EQ(status, IoStatus::kOk);
      answer = Frames(heard);
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, answer); });
  EXPECT_EQ(answer, (std::vector<std::string>{"", "7", "payload"}));
}

TEST_F(ZmqTest, RefusesToSendWhenTheHighWaterMarkIsReached) {
  const SocketPtr dealer = Open(ZmqType::kDealer, {.send_limit = 10});
  const ZmqMessage message = {"x"};
  EXPECT_FALSE(dealer->Send(message)) << "there is no peer";
  Connect(*dealer, "tcp://" + ClosedPort().ToString());
  int sent = 0;
  while (sent < 1000 && dealer->Send(message)) ++sent;
  EXPECT_EQ(sent, 10);
}

TEST_F(ZmqTest, DropsTheFramesAboveTheLimitAndSaysSo) {
  struct Script {
    static Task<void> Run(ZmqTest& t) {
      const SocketPtr router = t.Open(ZmqType::kRouter);
      const SocketPtr dealer = t.Open(ZmqType::kDealer);
      t.Connect(*dealer, t.Bind(*router));
      ZmqMessage longest;
      for (size_t i = 0; i < ZmqMessage::kMostFrames; ++i) longest.Add("f");
      const ZmqMessage next = {"next"};
      EXPECT_TRUE(dealer->Send(longest));
      EXPECT_TRUE(dealer->Send(next));
      ZmqMessage message;  // with the identity it is one frame too many
      IoStatus status = co_await router->Receive(message, t.Soon());
      EXPECT_EQ(status, IoStatus::kOk);
      EXPECT_EQ(message.size(), ZmqMessage::kMostFrames);
      EXPECT_TRUE(message.truncated());
      status = co_await router->Receive(message, t.Soon());
      EXPECT_EQ(message.back(), "next");
      EXPECT_FALSE(message.truncated());
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

TEST_F(ZmqTest, BindsAFreePortAndSaysWhich) {
  const SocketPtr first = Open(ZmqType::kPub);
  const SocketPtr second = Open(ZmqType::kPub);
  const std::string any = Bind(*first, "tcp://*:0");
  EXPECT_NE(PortOf(any), "0");
  EXPECT_NE(PortOf(any), PortOf(Bind(*second, "tcp://*:0")));
  const SocketPtr third = Open(ZmqType::kPub);
  const auto taken = third->Bind("tcp://*:" + PortOf(any));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().what, "cannot bind 'tcp://*:" + PortOf(any) +
                                    "': the port is taken; choose another or free it");
}

TEST_F(ZmqTest, NamesAnEndpointThatIsNone) {
  for (const char* wrong : {"tcp:/x", "x", "", "tcp://host", "tcp://host:port", "http://host:80"}) {
    const SocketPtr socket = Open(ZmqType::kSub);
    const auto connected = socket->Connect(wrong);
    ASSERT_FALSE(connected) << wrong;
    EXPECT_EQ(connected.error().what,
              fmt::format("'{}' is not a ZeroMQ endpoint; write tcp://HOST:PORT", wrong));
  }
}

TEST_F(ZmqTest, EndsAReceiveAtItsDeadlineAndCanReceiveAfterwards) {
  struct Script {
    static Task<void> Run(ZmqTest& t) {
      const SocketPtr router = t.Open(ZmqType::kRouter);
      const SocketPtr dealer = t.Open(ZmqType::kDealer);
      t.Connect(*dealer, t.Bind(*router));
      ZmqMessage message;
      const TimePoint until = t.loop_.now() + milliseconds(20);
      IoStatus status = co_await router->Receive(message, until);
      EXPECT_EQ(status, IoStatus::kTimeout);
      EXPECT_GE(t.loop_.now(), until);
      const ZmqMessage hello = {"hello"};
      dealer->Send(hello);
      status = co_await router->Receive(message, t.Soon());
      EXPECT_EQ(status, IoStatus::kOk);
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

TEST_F(ZmqTest, EndsAReceiveThatIsCancelledOrWhoseSocketGoes) {
  IoStatus cancelled = IoStatus::kOk;
  IoStatus destroyed = IoStatus::kOk;
  struct Script {
    static Task<void> Run(ZmqTest& t, IoStatus& cancelled, IoStatus& destroyed) {
      ZmqMessage message;
      SocketPtr socket = t.Open(ZmqType::kSub);
      auto first = t.Receive(*socket, message, cancelled);
      co_await t.loop_.Sleep(milliseconds(2));
      socket->Cancel();
      EXPECT_EQ(cancelled, IoStatus::kOk) << "not inside the call";
      co_await first;
      auto second = t.Receive(*socket, message, destroyed);
      co_await t.loop_.Sleep(milliseconds(2));
      socket.reset();
      co_await second;
      co_await t.loop_.Sleep(milliseconds(20));  // libzmq closes the descriptor later
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, cancelled, destroyed); });
  EXPECT_EQ(cancelled, IoStatus::kCancelled);
  EXPECT_EQ(destroyed, IoStatus::kCancelled);
}

TEST_F(ZmqTest, CountsThatThePublisherWentAndCameBack) {
  std::vector<ZmqPeerEvent> events;
  struct Script {
    static Task<void> Run(ZmqTest& t, std::vector<ZmqPeerEvent>& events) {
      SocketPtr publisher = t.Open(ZmqType::kPub);
      const std::string endpoint = t.Bind(*publisher);
      const SocketPtr subscriber = t.Open(ZmqType::kSub, {.reconnect_first = milliseconds(10)});
      subscriber->OnPeer([&events](ZmqPeerEvent event) { events.push_back(event); });
      subscriber->Subscribe("");
      t.Connect(*subscriber, endpoint);
      auto coming = t.Until([&] { return subscriber->connects() == 1; });
      co_await coming;
      EXPECT_EQ(subscriber->disconnects(), 0u);
      publisher.reset();
      auto going = t.Until([&] { return subscriber->disconnects() == 1; });
      co_await going;
      publisher = t.Open(ZmqType::kPub);
      auto bound = publisher->Bind(endpoint);
      while (!bound) {  // libzmq closes the old listener asynchronously
        co_await t.loop_.Sleep(milliseconds(1));
        bound = publisher->Bind(endpoint);
      }
      // When a message of the new connection arrives, that connection is already counted.
      auto subscribing = t.AwaitSubscription(*publisher, *subscriber, "t");
      co_await subscribing;
      EXPECT_EQ(subscriber->connects(), 2u);
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, events); });
  EXPECT_EQ(events,
            (std::vector<ZmqPeerEvent>{ZmqPeerEvent::kConnected, ZmqPeerEvent::kDisconnected,
                                       ZmqPeerEvent::kConnected}));
}

TEST_F(ZmqTest, DisconnectsAPeerWhoseMessageIsTooLargeAndDialsItAgain) {
  struct Script {
    static Task<void> Run(ZmqTest& t) {
      const SocketPtr publisher = t.Open(ZmqType::kPub);
      const SocketPtr subscriber = t.Open(ZmqType::kSub, {.max_message = 1000});
      subscriber->Subscribe("");
      t.Connect(*subscriber, t.Bind(*publisher));
      auto subscribing = t.AwaitSubscription(*publisher, *subscriber, "t");
      co_await subscribing;
      const ZmqMessage large = {"t", std::string(1001, 'x')};
      publisher->Send(large);
      auto losing = t.Until([&] { return subscriber->disconnects() == 1; });
      co_await losing;
      auto again = t.AwaitSubscription(*publisher, *subscriber, "t");
      co_await again;
      EXPECT_EQ(subscriber->connects(), 2u);
      const ZmqMessage fits = {"t", std::string(1000, 'x')};
      publisher->Send(fits);
      ZmqMessage message;
      const IoStatus status = co_await subscriber->Receive(message, t.Soon());
      EXPECT_EQ(status, IoStatus::kOk);
      EXPECT_EQ(message.back().size(), 1000u);
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

// Engines may connect to a bound SUB; so may any other program.
TEST_F(ZmqTest, IsNotDisturbedByGarbageOnABoundSubscriber) {
  struct Script {
    static void SendGarbage(const std::string& endpoint, std::string_view bytes) {
      const Address to =
          *Address::Numeric("127.0.0.1", static_cast<uint16_t>(std::stoi(PortOf(endpoint))));
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      EXPECT_EQ(::connect(fd, to.get(), to.size()), 0);
      EXPECT_GT(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
      ::close(fd);
    }
    static Task<void> Run(ZmqTest& t) {
      const SocketPtr subscriber = t.Open(ZmqType::kSub);
      subscriber->Subscribe("");
      const std::string endpoint = t.Bind(*subscriber, "tcp://*:0");
      const SocketPtr publisher = t.Open(ZmqType::kPub);
      t.Connect(*publisher, Dial(endpoint));
      auto subscribing = t.AwaitSubscription(*publisher, *subscriber, "t");
      co_await subscribing;
      const std::string noise(100'000, '\xff');
      for (const std::string_view bytes :
           {std::string_view("GET / HTTP/1.1\r\n\r\n"), std::string_view(noise),
            std::string_view("\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL", 16)}) {
        SendGarbage(endpoint, bytes);
      }
      co_await t.loop_.Sleep(milliseconds(50));
      const ZmqMessage still = {"t", "still here"};
      publisher->Send(still);
      ZmqMessage message;
      const IoStatus status = co_await subscriber->Receive(message, t.Soon());
      EXPECT_EQ(status, IoStatus::kOk);
      EXPECT_EQ(message.back(), "still here");
      EXPECT_EQ(subscriber->connects(), 1u);
      EXPECT_EQ(subscriber->disconnects(), 0u);
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

// A listener that does not speak ZeroMQ makes libzmq give up permanently; ZmqSocket dials again.
TEST_F(ZmqTest, DialsAgainAfterAPeerThatSpokeSomethingElse) {
  struct Script {
    static Task<void> Run(ZmqTest& t) {
      const int listening = ListenOnLoopback();
      const std::string endpoint = "tcp://" + BoundAddress(listening).ToString();
      const SocketPtr subscriber = t.Open(ZmqType::kSub, {.reconnect_first = milliseconds(10)});
      subscriber->Subscribe("");
      t.Connect(*subscriber, endpoint);
      for (int i = 0; i < 2; ++i) {
        const int fd = ::accept(listening, nullptr, nullptr);
        const std::string noise(1000, '\x42');
        EXPECT_GT(::send(fd, noise.data(), noise.size(), MSG_NOSIGNAL), 0);
        co_await t.loop_.Sleep(milliseconds(50));
        ::close(fd);
      }
      ::close(listening);
      const SocketPtr publisher = t.Open(ZmqType::kPub);
      auto bound = publisher->Bind(endpoint);
      while (!bound) {
        co_await t.loop_.Sleep(milliseconds(1));
        bound = publisher->Bind(endpoint);
      }
      auto subscribing = t.AwaitSubscription(*publisher, *subscriber, "t");
      co_await subscribing;
      // libzmq's I/O thread reports connections a little later.
      while (subscriber->connects() == 0) co_await t.loop_.Sleep(milliseconds(1));
      EXPECT_EQ(subscriber->connects(), 1u);
      EXPECT_EQ(subscriber->disconnects(), 0u);
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

TEST_F(ZmqTest, LetsOthersOnTheLoopHaveTheirTurnInAStreamThatNeverPauses) {
  constexpr int kMessages = 10'000;
  int turns = 0;
  struct Script {
    static Task<void> Count(ZmqTest& t, bool& over, int& turns) {
      while (!over) {
        ++turns;
        co_await t.loop_.Sleep(Duration(0));
      }
    }
    static Task<void> Run(ZmqTest& t, int& turns) {
      const SocketPtr router = t.Open(ZmqType::kRouter, {.receive_limit = 0});
      const SocketPtr dealer = t.Open(ZmqType::kDealer, {.send_limit = 0});
      t.Connect(*dealer, t.Bind(*router));
      const ZmqMessage question = {"x"};
      for (int i = 0; i < kMessages; ++i) EXPECT_TRUE(dealer->Send(question));
      co_await t.loop_.Sleep(milliseconds(300));  // all of it has arrived
      bool over = false;
      auto counting = Count(t, over, turns);
      ZmqMessage message;
      for (int i = 0; i < kMessages; ++i) {
        const IoStatus status = co_await router->Receive(message, t.Soon());
        EXPECT_EQ(status, IoStatus::kOk);
      }
      over = true;
      co_await counting;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, turns); });
  EXPECT_GT(turns, 3);
}

TEST(ZmqContext, GoesAtOnceAlthoughNobodyTookWhatWasSent) {
  const TimePoint begun = std::chrono::steady_clock::now();
  {
    ZmqContext context;
    Loop loop;
    auto dealer = *ZmqSocket::Open(context, loop, ZmqType::kDealer, {});
    ASSERT_TRUE(dealer->Connect("tcp://" + ClosedPort().ToString()));
    const ZmqMessage message = {std::string(1 << 20, 'x')};
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(dealer->Send(message));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(10));
}

TEST(ZmqContextDeathTest, DoesNotWaitForASocketThatWasForgotten) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto forget = [] {
    Loop loop;
    auto context = std::make_unique<ZmqContext>();
    auto socket = *ZmqSocket::Open(*context, loop, ZmqType::kSub, {});
    context.reset();
  };
  EXPECT_DEATH(forget(), "open_");
}

}  // namespace
}  // namespace fathom
