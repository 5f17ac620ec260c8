#include "io/net/socket.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/net/listener.h"
#include "testing/loop_thread.h"
#include "testing/loopback_pair.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CountingWatcher final : public HangupWatcher {
 public:
  void OnHangup() override {
    ++calls;
    if (then) then();
  }
  int calls = 0;
  std::function<void()> then;
};

class SocketTest : public testing::Test {
 public:
  SocketTest() {
    const LoopbackPair pair = ConnectedPair();
    near_ = std::make_unique<Socket>(loop_, pair.near);
    far_ = std::make_unique<Socket>(loop_, pair.far);
  }

  TimePoint Soon(Duration time = seconds(20)) { return loop_.now() + time; }

  Task<void> Send(Socket& socket, std::string text, IoResult& result) {
    result = co_await socket.Write(text, Soon());
  }

  // Reads until the end of the stream or an error.
  Task<void> ReadToEnd(Socket& socket, std::string& text, IoStatus& last) {
    std::vector<char> room(100'000);
    for (;;) {
      const IoResult read = co_await socket.Read(room, Soon());
      last = read.status;
      if (!read.ok()) co_return;
      EXPECT_GT(read.bytes, 0u);
      text.append(room.data(), read.bytes);
    }
  }

  Task<void> ReadOnce(Socket& socket, Duration patience, IoResult& result) {
    char room[64];
    result = co_await socket.Read(room, Soon(patience));
  }

  Loop loop_;
  std::unique_ptr<Socket> near_;
  std::unique_ptr<Socket> far_;
};

TEST_F(SocketTest, DeliversBytesInBothDirectionsAndThenTheEnd) {
  std::string at_far;
  std::string at_near;
  IoStatus far_end{};
  IoStatus near_end{};
  IoResult sent[2];
  struct Script {
    static Task<void> Run(SocketTest& t, std::string& f, std::string& n, IoStatus& fe, IoStatus& ne,
                          IoResult* sent) {
      auto sending_1 = t.Send(*t.near_, "to far", sent[0]);
      co_await sending_1;
      auto sending_2 = t.Send(*t.far_, "to near", sent[1]);
      co_await sending_2;
      t.near_->FinishSending();
      t.far_->FinishSending();
      auto reading_3 = t.ReadToEnd(*t.far_, f, fe);
      co_await reading_3;
      auto reading_4 = t.ReadToEnd(*t.near_, n, ne);
      co_await reading_4;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, at_far, at_near, far_end, near_end, sent); });
  EXPECT_EQ(at_far, "to far");
  EXPECT_EQ(at_near, "to near");
  EXPECT_EQ(far_end, IoStatus::kEof);
  EXPECT_EQ(near_end, IoStatus::kEof);
  EXPECT_EQ(sent[0].bytes, 6u);
}

// The kernel cannot hold all of it, so the writer has to wait for the reader again and again.
TEST_F(SocketTest, WritesMuchMoreThanTheKernelHolds) {
  std::string big(16 << 20, ' ');
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>('a' + i % 23);
  std::string got;
  IoStatus end{};
  IoResult sent;
  struct Script {
    static Task<void> SendAll(SocketTest& t, const std::string& big, IoResult& sent) {
      // In several parts, one of them empty.
      std::vector<iovec> parts;
      char* const data = const_cast<char*>(big.data());
      parts.push_back({data, 1});
      parts.push_back({data, 0});
      parts.push_back({data + 1, 5 << 20});
      parts.push_back({data + 1 + (5 << 20), big.size() - 1 - (5 << 20)});
      sent = co_await t.near_->Write(parts, t.Soon());
      t.near_->FinishSending();
    }
    static Task<void> Run(SocketTest& t, const std::string& big, IoResult& sent, std::string& got,
                          IoStatus& end) {
      auto sending = SendAll(t, big, sent);
      co_await t.loop_.Sleep(milliseconds(5));  // the writer is stuck now
      auto reading_5 = t.ReadToEnd(*t.far_, got, end);
      co_await reading_5;
      co_await sending;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, big, sent, got, end); });
  EXPECT_TRUE(sent.ok());
  EXPECT_EQ(sent.bytes, big.size());
  EXPECT_EQ(end, IoStatus::kEof);
  EXPECT_TRUE(got == big);
}

TEST_F(SocketTest, WritesNothingAtAllWithSuccess) {
  IoResult sent{IoStatus::kError, 7};
  RunToEnd(loop_, [&] { return Send(*near_, "", sent); });
  EXPECT_TRUE(sent.ok());
  EXPECT_EQ(sent.bytes, 0u);
}

TEST_F(SocketTest, EndsAReadAtItsDeadlineAndCanReadAfterwards) {
  IoResult late;
  IoResult then;
  IoResult sent;
  struct Script {
    static Task<void> Run(SocketTest& t, IoResult& late, IoResult& then, IoResult& sent) {
      const TimePoint until = t.loop_.now() + milliseconds(20);
      auto reading_6 = t.ReadOnce(*t.near_, milliseconds(20), late);
      co_await reading_6;
      EXPECT_GE(t.loop_.now(), until);
      auto sending_7 = t.Send(*t.far_, "x", sent);
      co_await sending_7;
      auto reading_8 = t.ReadOnce(*t.near_, seconds(20), then);
      co_await reading_8;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, late, then, sent); });
  EXPECT_EQ(late.status, IoStatus::kTimeout);
  EXPECT_TRUE(then.ok());
  EXPECT_EQ(then.bytes, 1u);
}

TEST_F(SocketTest, EndsAWriteThatNobodyReadsAtItsDeadline) {
  IoResult sent;
  struct Script {
    static Task<void> Run(SocketTest& t, IoResult& sent) {
      const std::string big(32 << 20, 'x');
      sent = co_await t.near_->Write(big, t.Soon(milliseconds(30)));
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, sent); });
  EXPECT_EQ(sent.status, IoStatus::kTimeout);
  EXPECT_GT(sent.bytes, 0u);
}

TEST_F(SocketTest, EndsAReadThatIsCancelledNotInsideTheCallButInTheSameTurn) {
  IoResult read{IoStatus::kOk, 0};
  bool inside = false;
  struct Script {
    static Task<void> Run(SocketTest& t, IoResult& read, bool& inside) {
      auto reading = t.ReadOnce(*t.near_, seconds(20), read);
      co_await t.loop_.Sleep(milliseconds(2));
      t.near_->Cancel();
      t.near_->Cancel();  // a second call has no effect
      inside = read.status == IoStatus::kCancelled;
      co_await reading;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, read, inside); });
  EXPECT_FALSE(inside);
  EXPECT_EQ(read.status, IoStatus::kCancelled);
}

TEST_F(SocketTest, IgnoresACancelWhenNothingWaits) {
  IoResult read;
  IoResult sent;
  struct Script {
    static Task<void> Run(SocketTest& t, IoResult& read, IoResult& sent) {
      t.near_->Cancel();
      auto sending_9 = t.Send(*t.far_, "still here", sent);
      co_await sending_9;
      auto reading_10 = t.ReadOnce(*t.near_, seconds(20), read);
      co_await reading_10;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, read, sent); });
  EXPECT_TRUE(read.ok());
}

TEST_F(SocketTest, ReportsAResetConnectionAsBrokenNotAsItsEnd) {
  IoResult read;
  struct Script {
    static Task<void> Run(SocketTest& t, IoResult& read) {
      auto reading = t.ReadOnce(*t.near_, seconds(20), read);
      co_await t.loop_.Sleep(milliseconds(2));
      t.far_->ResetOnClose();
      t.far_.reset();
      co_await reading;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, read); });
  EXPECT_EQ(read.status, IoStatus::kError);
}

TEST_F(SocketTest, FailsAWriteToAPeerThatIsGoneWithoutASignal) {
  IoResult sent[2];
  struct Script {
    static Task<void> Run(SocketTest& t, IoResult* sent) {
      t.far_->ResetOnClose();
      t.far_.reset();
      co_await t.loop_.Sleep(milliseconds(2));
      auto sending_11 = t.Send(*t.near_, "anyone?", sent[0]);
      co_await sending_11;
      auto sending_12 = t.Send(*t.near_, "anyone?", sent[1]);
      co_await sending_12;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, sent); });
  EXPECT_EQ(sent[1].status, IoStatus::kError);
}

TEST_F(SocketTest, TellsTheWatcherThatThePeerHasHalfClosedThoughNobodyReads) {
  CountingWatcher watcher;
  struct Script {
    static Task<void> Run(SocketTest& t, CountingWatcher& watcher) {
      t.near_->Watch(&watcher);
      co_await t.loop_.Sleep(milliseconds(5));
      EXPECT_EQ(watcher.calls, 0);
      EXPECT_FALSE(t.near_->hung_up());
      t.far_->FinishSending();
      co_await t.loop_.Sleep(milliseconds(20));
      t.near_->Watch(nullptr);
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, watcher); });
  EXPECT_EQ(watcher.calls, 1);
  EXPECT_TRUE(near_->hung_up());
}

TEST_F(SocketTest, LetsAWatcherDestroyTheSocketItWatches) {
  CountingWatcher watcher;
  watcher.then = [this] { near_.reset(); };
  struct Script {
    static Task<void> Run(SocketTest& t, CountingWatcher& watcher) {
      t.near_->Watch(&watcher);
      t.far_.reset();
      while (watcher.calls == 0) co_await t.loop_.Sleep(milliseconds(1));
      co_await t.loop_.Sleep(milliseconds(3));
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, watcher); });
  EXPECT_EQ(watcher.calls, 1);
}

TEST_F(SocketTest, ReadsWhatCameBeforeAHangUpAndThenItsEnd) {
  std::string got;
  IoStatus end{};
  struct Script {
    static Task<void> Run(SocketTest& t, std::string& got, IoStatus& end) {
      IoResult sent;
      auto sending_13 = t.Send(*t.far_, "last words", sent);
      co_await sending_13;
      t.far_.reset();
      co_await t.loop_.Sleep(milliseconds(10));  // both are reported together
      auto reading_14 = t.ReadToEnd(*t.near_, got, end);
      co_await reading_14;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, got, end); });
  EXPECT_EQ(got, "last words");
  EXPECT_EQ(end, IoStatus::kEof);
}

// A connection that is used again: the last answer exactly filled the buffer that it was read into,
// so the socket could not know that nothing follows.
TEST_F(SocketTest, WritesUntilInputEverythingAlthoughTheLastReadFilledItsBuffer) {
  std::string big(16 << 20, 'r');
  std::string got;
  IoStatus end{};
  IoResult sent;
  struct Script {
    static Task<void> SendRequest(SocketTest& t, std::string& big, IoResult& sent) {
      iovec part{big.data(), big.size()};
      sent = co_await t.near_->WriteUntilInput({&part, 1}, t.Soon());
      t.near_->FinishSending();
    }
    static Task<void> Run(SocketTest& t, std::string& big, IoResult& sent, std::string& got,
                          IoStatus& end) {
      IoResult answered;
      auto answering = t.Send(*t.far_, std::string(64, 'a'), answered);
      co_await answering;
      IoResult read;
      auto reading = t.ReadOnce(*t.near_, seconds(20), read);  // has room for 64 bytes
      co_await reading;
      EXPECT_EQ(read.bytes, 64u);
      EXPECT_TRUE(t.near_->quiet());
      auto sending = SendRequest(t, big, sent);
      co_await t.loop_.Sleep(milliseconds(5));  // the writer is stuck now
      auto receiving = t.ReadToEnd(*t.far_, got, end);
      co_await receiving;
      co_await sending;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, big, sent, got, end); });
  EXPECT_TRUE(sent.ok());
  EXPECT_EQ(sent.bytes, big.size());
  EXPECT_EQ(got.size(), big.size());
}

TEST_F(SocketTest, EndsAWriteUntilInputWhenThePeerAnswersEarly) {
  std::string big(16 << 20, 'r');
  IoResult sent;
  struct Script {
    static Task<void> SendRequest(SocketTest& t, std::string& big, IoResult& sent) {
      iovec part{big.data(), big.size()};
      sent = co_await t.near_->WriteUntilInput({&part, 1}, t.Soon());
    }
    static Task<void> Run(SocketTest& t, std::string& big, IoResult& sent) {
      auto sending = SendRequest(t, big, sent);
      co_await t.loop_.Sleep(milliseconds(5));  // the writer is stuck now
      IoResult answered;
      auto answering = t.Send(*t.far_, "413", answered);
      co_await answering;
      co_await sending;
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this, big, sent); });
  EXPECT_TRUE(sent.ok());
  EXPECT_GT(sent.bytes, 0u);
  EXPECT_LT(sent.bytes, big.size());
}

TEST_F(SocketTest, IsQuietUntilSomethingComes) {
  struct Script {
    static Task<void> Run(SocketTest& t) {
      IoResult io;
      co_await t.loop_.Sleep(milliseconds(2));
      EXPECT_TRUE(t.near_->quiet());
      auto sending_15 = t.Send(*t.far_, std::string(64, 'x'), io);
      co_await sending_15;
      co_await t.loop_.Sleep(milliseconds(10));
      EXPECT_FALSE(t.near_->quiet());
      // Reads exactly the available bytes, so the read itself cannot detect that none are left.
      auto reading_16 = t.ReadOnce(*t.near_, seconds(20), io);
      co_await reading_16;
      EXPECT_EQ(io.bytes, 64u);
      EXPECT_TRUE(t.near_->quiet());
      t.far_.reset();
      co_await t.loop_.Sleep(milliseconds(10));
      EXPECT_FALSE(t.near_->quiet());
    }
  };
  RunToEnd(loop_, [&] { return Script::Run(*this); });
}

TEST(Connect, ReachesAListenerAndIsRefusedWhereThereIsNone) {
  Loop loop;
  ConnectResult reached{{IoStatus::kError, 0}, 0};
  IoStatus refused = IoStatus::kOk;
  const int listening = ListenOnLoopback();
  struct Script {
    static Task<void> Run(Loop& loop, Address open, Address closed, ConnectResult& reached,
                          IoStatus& refused) {
      const auto fd = Socket::BeginConnect(open);
      EXPECT_TRUE(fd);
      if (fd) {
        Socket socket(loop, *fd);
        reached = co_await socket.Connected(loop.now() + seconds(20));
      }
      const auto none = Socket::BeginConnect(closed);
      refused = IoStatus::kError;  // some systems fail at once
      if (none) {
        Socket socket(loop, *none);
        const ConnectResult result = co_await socket.Connected(loop.now() + seconds(20));
        refused = result.status;
      }
    }
  };
  const Address open = BoundAddress(listening);
  const Address closed = ClosedPort();
  RunToEnd(loop, [&] { return Script::Run(loop, open, closed, reached, refused); });
  ::close(listening);
  EXPECT_TRUE(reached.ok());
  EXPECT_EQ(refused, IoStatus::kError);
}

// A listener whose queue is full leaves connections pending indefinitely.
TEST(Connect, CanBeCancelledAndCanTimeOut) {
  Loop loop;
  const int listening = ListenOnLoopback(0);
  const Address to = BoundAddress(listening);
  std::vector<int> fillers;
  for (int i = 0; i < 8; ++i) fillers.push_back(*Socket::BeginConnect(to));
  std::this_thread::sleep_for(milliseconds(20));
  std::vector<IoStatus> ends;
  struct Script {
    static Task<void> One(Loop& loop, Socket& socket, Duration patience, std::vector<IoStatus>& e) {
      const ConnectResult result = co_await socket.Connected(loop.now() + patience);
      e.push_back(result.status);
    }
    static Task<void> Run(Loop& loop, Address to, std::vector<IoStatus>& ends) {
      Socket first(loop, *Socket::BeginConnect(to));
      Socket second(loop, *Socket::BeginConnect(to));
      auto waiting = One(loop, first, seconds(20), ends);
      auto impatient = One(loop, second, milliseconds(20), ends);
      co_await impatient;
      first.Cancel();
      co_await waiting;
    }
  };
  RunToEnd(loop, [&] { return Script::Run(loop, to, ends); });
  EXPECT_EQ(ends, (std::vector<IoStatus>{IoStatus::kTimeout, IoStatus::kCancelled}));
  for (const int fd : fillers) ::close(fd);
  ::close(listening);
}

// Two hundred sockets have events in the same batch, and the handler of the first event closes all
// of them. The later events of the batch must be ignored and must not reach a new socket.
TEST(Batch, IgnoresLateEventsForSocketsThatWereClosedInTheSameTurn) {
  constexpr size_t kPairs = 200;
  Loop loop;
  std::vector<std::unique_ptr<Socket>> near;
  std::vector<std::unique_ptr<Socket>> fresh;
  std::vector<int> far;
  CountingWatcher watcher;
  watcher.then = [&] {
    near.clear();
    for (int i = 0; i < 10; ++i) {
      const LoopbackPair pair = ConnectedPair();
      fresh.push_back(std::make_unique<Socket>(loop, pair.near));
      fresh.push_back(std::make_unique<Socket>(loop, pair.far));
    }
  };
  loop.Post([&] {
    for (size_t i = 0; i < kPairs; ++i) {
      const LoopbackPair pair = ConnectedPair();
      near.push_back(std::make_unique<Socket>(loop, pair.near));
      near.back()->Watch(&watcher);
      far.push_back(pair.far);
    }
    for (const int fd : far) ::close(fd);
  });
  struct Script {
    static Task<void> Run(Loop& loop, CountingWatcher& watcher) {
      while (watcher.calls == 0) co_await loop.Sleep(milliseconds(1));
      co_await loop.Sleep(milliseconds(5));
    }
  };
  RunToEnd(loop, [&] { return Script::Run(loop, watcher); });
  EXPECT_EQ(watcher.calls, 1);
  for (const auto& socket : fresh) EXPECT_FALSE(socket->hung_up());
}

TEST(Listener, HandsOutConnectionsUntilItIsClosed) {
  LoopThread thread;
  Log log(2, LogLevel::kOff);
  std::atomic<int> accepted{0};
  auto listener = *Listener::Bind(thread.loop(), *Address::Numeric("127.0.0.1", 0), log);
  const Address address = listener->address();
  EXPECT_NE(address.port(), 0);
  thread.Call([&] {
    listener->Start([&](int fd) {
      ::close(fd);
      ++accepted;
    });
  });
  for (int i = 0; i < 50; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(fd, address.get(), address.size()), 0);
    ::close(fd);
  }
  while (accepted < 50) std::this_thread::sleep_for(milliseconds(1));
  thread.Call([&] { listener->Close(); });
  thread.Call([&] { listener.reset(); });
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_NE(::connect(fd, address.get(), address.size()), 0);
  ::close(fd);
}

TEST(Listener, SaysWhichAddressIsInUse) {
  Loop loop;
  Log log(2, LogLevel::kOff);
  const int taken = ListenOnLoopback();
  const auto bound = Listener::Bind(loop, BoundAddress(taken), log);
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().blame, Blame::kCaller);
  EXPECT_NE(bound.error().what.find(BoundAddress(taken).ToString()), std::string::npos);
  ::close(taken);
}

}  // namespace
}  // namespace fathom
