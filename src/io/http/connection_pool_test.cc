#include "io/http/connection_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "testing/loop_thread.h"
#include "testing/loopback_pair.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WorkerId kWorker(1);
constexpr WorkerId kOther(2);

// Opens real connections to a listener whose accepted ends the test holds.
class ConnectionPoolTest : public testing::Test {
 public:
  ConnectionPoolTest() : listening_(ListenOnLoopback()) {
    endpoint_.url = *Url::Parse("http://" + BoundAddress(listening_).ToString());
  }
  ~ConnectionPoolTest() override {
    ::close(listening_);
    for (const int fd : peers_) ::close(fd);
  }

  Task<void> Open(std::unique_ptr<ClientConnection>& out) {
    out = std::make_unique<ClientConnection>(loop_);
    auto opening = out->Open(endpoint_, resolver_, loop_.now() + seconds(10));
    const auto opened = co_await opening;
    EXPECT_TRUE(opened) << opened.error().what;
    peers_.push_back(::accept(listening_, nullptr, nullptr));
    co_await loop_.Sleep(milliseconds(2));
  }

  // Opens `count` connections, all in one pool, and returns them in the order they were put.
  Task<void> Fill(ConnectionPool& pool, size_t count, std::vector<ClientConnection*>& order) {
    for (size_t i = 0; i < count; ++i) {
      std::unique_ptr<ClientConnection> connection;
      auto opening = Open(connection);
      co_await opening;
      order.push_back(connection.get());
      pool.Put(kWorker, std::move(connection));
    }
  }

  void Run(const std::function<Task<void>()>& start) { RunToEnd(loop_, start); }

  Loop loop_;
  Resolver resolver_;
  const int listening_;
  Endpoint endpoint_;
  std::vector<int> peers_;
};

TEST_F(ConnectionPoolTest, GivesBackTheOneThatWasPutLast) {
  ConnectionPool pool(loop_, 10, seconds(10));
  struct Script {
    static Task<void> Run(ConnectionPoolTest& t, ConnectionPool& pool) {
      std::vector<ClientConnection*> order;
      auto filling = t.Fill(pool, 3, order);
      co_await filling;
      EXPECT_EQ(pool.idle(), 3u);
      EXPECT_EQ(pool.Take(kOther), nullptr);
      std::vector<std::unique_ptr<ClientConnection>> taken;
      for (size_t i = 0; i < 3; ++i) {
        taken.push_back(pool.Take(kWorker));
        EXPECT_EQ(taken.back().get(), order[2 - i]);
        EXPECT_TRUE(taken.back()->reused());
      }
      EXPECT_EQ(pool.Take(kWorker), nullptr);
      EXPECT_EQ(pool.idle(), 0u);
    }
  };
  Run([&] { return Script::Run(*this, pool); });
}

TEST_F(ConnectionPoolTest, KeepsNoMoreThanItMay) {
  ConnectionPool pool(loop_, 2, seconds(10));
  ConnectionPool none(loop_, 0, seconds(10));
  struct Script {
    static Task<void> Run(ConnectionPoolTest& t, ConnectionPool& pool, ConnectionPool& none) {
      std::vector<ClientConnection*> order;
      auto filling = t.Fill(pool, 3, order);
      co_await filling;
      EXPECT_EQ(pool.idle(), 2u);
      auto in_vain = t.Fill(none, 1, order);
      co_await in_vain;
      EXPECT_EQ(none.idle(), 0u);
      EXPECT_EQ(none.Take(kWorker), nullptr);
    }
  };
  Run([&] { return Script::Run(*this, pool, none); });
}

TEST_F(ConnectionPoolTest, LosesAtOnceAConnectionThatItsWorkerCloses) {
  ConnectionPool pool(loop_, 10, seconds(10));
  struct Script {
    static Task<void> Run(ConnectionPoolTest& t, ConnectionPool& pool) {
      std::vector<ClientConnection*> order;
      auto filling = t.Fill(pool, 3, order);
      co_await filling;
      std::vector<WorkerId> lost;
      pool.OnLost([&lost](WorkerId worker) { lost.push_back(worker); });
      ::shutdown(t.peers_[1], SHUT_RDWR);
      while (pool.idle() > 2) co_await t.loop_.Sleep(milliseconds(1));
      co_await t.loop_.Sleep(milliseconds(3));
      EXPECT_EQ(lost, std::vector<WorkerId>{kWorker});
      EXPECT_EQ(pool.idle(), 2u);
      const auto last = pool.Take(kWorker);
      EXPECT_EQ(last.get(), order[2]);
      const auto first = pool.Take(kWorker);
      EXPECT_EQ(first.get(), order[0]);
    }
  };
  Run([&] { return Script::Run(*this, pool); });
}

TEST_F(ConnectionPoolTest, DoesNotGiveOutAConnectionOnWhichSomethingUnaskedHasCome) {
  ConnectionPool pool(loop_, 10, seconds(10));
  struct Script {
    static Task<void> Run(ConnectionPoolTest& t, ConnectionPool& pool) {
      std::vector<ClientConnection*> order;
      auto filling = t.Fill(pool, 2, order);
      co_await filling;
      EXPECT_EQ(::send(t.peers_[1], "HTTP/1.1 408 x\r\n\r\n", 18, 0), 18);
      co_await t.loop_.Sleep(milliseconds(10));
      const auto taken = pool.Take(kWorker);
      EXPECT_EQ(taken.get(), order[0]);
    }
  };
  Run([&] { return Script::Run(*this, pool); });
}

TEST_F(ConnectionPoolTest, DoesNotGiveOutAConnectionThatHasWaitedTooLongAndSweepsIt) {
  ConnectionPool pool(loop_, 10, milliseconds(300));
  struct Script {
    static Task<void> Run(ConnectionPoolTest& t, ConnectionPool& pool) {
      std::vector<ClientConnection*> order;
      auto filling = t.Fill(pool, 1, order);
      co_await filling;
      co_await t.loop_.Sleep(milliseconds(320));
      EXPECT_EQ(pool.Take(kWorker), nullptr);
      auto again = t.Fill(pool, 2, order);
      co_await again;
      pool.Sweep();
      EXPECT_EQ(pool.idle(), 2u);
      co_await t.loop_.Sleep(milliseconds(320));
      EXPECT_EQ(pool.idle(), 2u);
      pool.Sweep();
      EXPECT_EQ(pool.idle(), 0u);
    }
  };
  Run([&] { return Script::Run(*this, pool); });
}

TEST_F(ConnectionPoolTest, DropsWhatWaitsForOneWorkerOnly) {
  ConnectionPool pool(loop_, 10, seconds(10));
  struct Script {
    static Task<void> Run(ConnectionPoolTest& t, ConnectionPool& pool) {
      std::vector<ClientConnection*> order;
      auto filling = t.Fill(pool, 2, order);
      co_await filling;
      std::unique_ptr<ClientConnection> other;
      auto opening = t.Open(other);
      co_await opening;
      pool.Put(kOther, std::move(other));
      pool.Drop(kWorker);
      EXPECT_EQ(pool.idle(), 1u);
      EXPECT_EQ(pool.Take(kWorker), nullptr);
      EXPECT_NE(pool.Take(kOther), nullptr);
    }
  };
  Run([&] { return Script::Run(*this, pool); });
}

TEST_F(ConnectionPoolTest, SurvivesTheLossOfManyConnectionsInOneTurn) {
  ConnectionPool pool(loop_, 100, seconds(10));
  struct Script {
    static Task<void> Run(ConnectionPoolTest& t, ConnectionPool& pool) {
      std::vector<ClientConnection*> order;
      auto filling = t.Fill(pool, 50, order);
      co_await filling;
      for (const int fd : t.peers_) ::shutdown(fd, SHUT_RDWR);
      while (pool.idle() > 0) co_await t.loop_.Sleep(milliseconds(1));
      EXPECT_EQ(pool.Take(kWorker), nullptr);
    }
  };
  Run([&] { return Script::Run(*this, pool); });
}

}  // namespace
}  // namespace fathom
