// Several replicas over the loopback, with peers that are absent, stopped, replaced or hostile.
#include "router/replicas/zmtp_mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "io/zmtp/zmtp_wire.h"
#include "testing/becomes.h"
#include "testing/dns_server.h"
#include "testing/log_file.h"
#include "testing/loop_thread.h"
#include "testing/loopback_pair.h"
#include "testing/raw_socket.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

MeshReplicas Listed(const std::vector<Address>& places) {
  MeshReplicas replicas;
  for (const Address& place : places) {
    const auto split = SplitHostPort(place.ToString());
    replicas.places.push_back({split->first, split->second});
  }
  return replicas;
}

// A replica's carrier on a loop of its own.
class MeshNode {
 public:
  MeshNode(const std::string& id, const Address& listen, MeshReplicas replicas,
           ResolverOptions resolving = {}, Duration most_silence = seconds(30))
      : asks_(!resolving.servers.empty()), resolver_(std::move(resolving)) {
    thread_.Call([&] {
      auto mesh = ZmtpMesh::Create(thread_.loop(), resolver_, log_.log(),
                                   {.id = id,
                                    .listen = listen.ToString(),
                                    .replicas = std::move(replicas),
                                    .lookup_every = milliseconds(20),
                                    .most_silence = most_silence,
                                    .patience = milliseconds(0)});
      ASSERT_TRUE(mesh) << mesh.error().what;
      mesh_ = *std::move(mesh);
      mesh_->Start([this](std::string_view bytes) {
        ++heard_;
        heard_bytes_ += bytes.size();
        last_size_ = bytes.size();
        if (bytes.size() < 100) notes_.emplace(bytes);
      });
    });
  }
  ~MeshNode() {
    thread_.Call([&] {
      mesh_->Stop();
      mesh_.reset();
    });
    // A lookup that the mesh waits for ends before this one does.
    if (asks_) {
      thread_.Complete([&] { return resolver_.Ask(thread_.loop(), "fathom-peers.test", 1); });
    }
    thread_.Settle();
    thread_.Settle();
    resolver_.Stop();
  }

  bool Publish(std::string_view message) {
    bool sent = false;
    thread_.Call([&] { sent = mesh_->Publish(message); });
    return sent;
  }
  bool Send(std::string_view replica, std::string_view message) {
    bool sent = false;
    thread_.Call([&] { sent = mesh_->Send(replica, message); });
    return sent;
  }
  Carrier::Status status() {
    Carrier::Status status;
    thread_.Call([&] { status = mesh_->status(); });
    return status;
  }
  bool up() { return status().up; }
  // Reached all that it knows of.
  bool whole() {
    const Carrier::Status now = status();
    return now.up && now.problem.empty();
  }

  bool Has(const std::string& note) {
    bool has = false;
    thread_.Call([&] { has = notes_.contains(note); });
    return has;
  }

  const LogFile& log() const { return log_; }
  LoopThread& thread() { return thread_; }
  int heard() const { return heard_; }
  size_t heard_bytes() const { return heard_bytes_; }
  size_t last_size() const { return last_size_; }

 private:
  LogFile log_;
  const bool asks_;  // a name server
  Resolver resolver_;
  LoopThread thread_;
  std::unique_ptr<ZmtpMesh> mesh_;
  std::set<std::string> notes_;  // the short messages that were heard
  std::atomic<int> heard_ = 0;
  std::atomic<size_t> heard_bytes_ = 0;
  std::atomic<size_t> last_size_ = 0;
};

bool Hears(MeshNode& listener, MeshNode& speaker) {
  const int before = listener.heard();
  return Becomes([&] {
    speaker.Publish("hello");
    return listener.heard() > before;
  });
}

TEST(ZmtpMesh, ReplicasHearEachOtherAndNotThemselves) {
  const std::vector<Address> at = {ClosedPort(), ClosedPort()};
  MeshNode one("one", at[0], Listed(at));
  EXPECT_TRUE(Becomes([&] { return one.status().problem.find("listens") != std::string::npos; }));
  EXPECT_FALSE(one.up()) << "the other is absent";
  EXPECT_FALSE(one.Publish("lost"));
  MeshNode two("two", at[1], Listed(at));
  ASSERT_TRUE(Becomes([&] { return one.whole() && two.whole(); }));
  EXPECT_TRUE(one.Publish("to all"));
  EXPECT_TRUE(Becomes([&] { return two.heard() == 1; }));
  EXPECT_EQ(two.last_size(), 6u);
  EXPECT_TRUE(Hears(one, two));
  EXPECT_TRUE(Hears(two, one));
  EXPECT_FALSE(one.Has("to all"));
  EXPECT_TRUE(Becomes([&] { return one.status().sent_bytes == two.status().received_bytes; }));
}

TEST(ZmtpMesh, AloneItIsUpAndReachesNobody) {
  const Address at = ClosedPort();
  MeshNode one("one", at, Listed({at}));
  EXPECT_TRUE(Becomes([&] { return one.whole(); }));
  EXPECT_FALSE(one.Publish("x"));
  EXPECT_EQ(one.heard(), 0);
}

TEST(ZmtpMesh, AMessageToOneReachesItAlone) {
  const std::vector<Address> at = {ClosedPort(), ClosedPort(), ClosedPort()};
  MeshNode one("one", at[0], Listed(at));
  MeshNode two("two", at[1], Listed(at));
  MeshNode three("three", at[2], Listed(at));
  ASSERT_TRUE(Becomes([&] { return one.whole() && two.whole() && three.whole(); }));
  const std::string piece(ReplicaMessage::kMostBytes, 'p');
  EXPECT_TRUE(one.Send("three", piece));
  EXPECT_TRUE(Becomes([&] { return three.heard() == 1; }));
  EXPECT_EQ(three.last_size(), piece.size());
  EXPECT_TRUE(Hears(two, one));
  EXPECT_LT(two.heard_bytes(), piece.size());
  EXPECT_TRUE(one.Send("nobody that is known", "to all, then"));
  EXPECT_FALSE(one.Publish(std::string(ZmtpMesh::kLongestMessage + 1, 'x')));
}

TEST(ZmtpMesh, TwoProcessesOfTheSameIdHearEachOther) {
  const std::vector<Address> at = {ClosedPort(), ClosedPort()};
  MeshNode one("same", at[0], Listed(at));
  MeshNode two("same", at[1], Listed(at));
  EXPECT_TRUE(Hears(one, two));
  EXPECT_TRUE(Hears(two, one));
}

TEST(ZmtpMesh, FindsAReplicaAgainThatWasRestarted) {
  const std::vector<Address> at = {ClosedPort(), ClosedPort()};
  MeshNode one("one", at[0], Listed(at));
  for (int i = 0; i < 3; ++i) {
    MeshNode two("two", at[1], Listed(at));
    EXPECT_TRUE(Hears(two, one));
    EXPECT_TRUE(Hears(one, two));
  }
  EXPECT_TRUE(Becomes([&] { return !one.up(); }));
}

// The longest time between two looks at the clock, which the loop takes every millisecond.
Task<void> MeasureMeshTurns(Loop& loop, const std::atomic<bool>& enough, Duration& longest) {
  TimePoint last = std::chrono::steady_clock::now();
  while (!enough) {
    co_await loop.Sleep(milliseconds(1));
    const TimePoint now = std::chrono::steady_clock::now();
    longest = std::max(longest, now - last);
    last = now;
  }
}

// For a peer there is no difference to SIGSTOP: the kernel accepts bytes, and nothing reads them.
class Held {
 public:
  explicit Held(MeshNode& node) {
    std::promise<void> held;
    node.thread().loop().Post([this, &held] {
      held.set_value();
      go_.get_future().wait();
    });
    held.get_future().wait();
  }
  ~Held() { go_.set_value(); }

 private:
  std::promise<void> go_;
};

TEST(ZmtpMesh, AStoppedReplicaHoldsUpNeitherUsNorTheOthersAndHeals) {
  const std::vector<Address> at = {ClosedPort(), ClosedPort(), ClosedPort()};
  MeshNode one("one", at[0], Listed(at));
  MeshNode stopped("stopped", at[1], Listed(at));
  MeshNode three("three", at[2], Listed(at));
  ASSERT_TRUE(Becomes([&] { return one.whole() && stopped.whole() && three.whole(); }));

  std::atomic<bool> enough = false;
  Duration longest{};
  Duration usual{};  // of a loop that has nothing to do with it, on this machine now
  LoopThread idle;
  idle.loop().Post([&] { Spawn(MeasureMeshTurns(idle.loop(), enough, usual)); });
  one.thread().loop().Post([&] { Spawn(MeasureMeshTurns(one.thread().loop(), enough, longest)); });
  {
    const Held held(stopped);
    const std::string state(200'000, 'x');
    // Far more than the buffers of a socket and the outbox have room for.
    for (int i = 0; i < 200; ++i) {
      EXPECT_TRUE(one.Publish(state));
      std::this_thread::sleep_for(milliseconds(5));
    }
    EXPECT_GT(one.status().dropped, 0u);
    EXPECT_TRUE(Hears(three, one));
    bool refused = false;
    for (int i = 0; i < 100 && !refused; ++i) refused = !one.Send("stopped", state);
    EXPECT_TRUE(refused);
    EXPECT_TRUE(one.Send("three", state)) << "only the way to the stopped one is full";
  }
  enough = true;
  std::this_thread::sleep_for(milliseconds(20));
  idle.Stop();
  one.thread().Call([&] { EXPECT_LT(longest, milliseconds(500) + 4 * usual) << Seconds(usual); });
  RecordProperty("longest_turn_us", static_cast<int>(longest.count() / 1000));
  EXPECT_TRUE(Hears(stopped, one));
  EXPECT_TRUE(Becomes([&] { return one.whole(); }));
}

std::string PublisherHandshake() {
  std::string bytes = ZmtpGreeting("NULL", false);
  AppendZmtpCommand("READY", ZmtpMetadata(ZmtpType::kPub), bytes);
  return bytes;
}

TEST(ZmtpMesh, GarbageAndOversizedFramesCostTheConnectionAlone) {
  const std::vector<Address> at = {ClosedPort(), ClosedPort()};
  MeshNode one("one", at[0], Listed(at));
  MeshNode two("two", at[1], Listed(at));
  ASSERT_TRUE(Becomes([&] { return one.whole() && two.whole(); }));

  RawSocket http(at[0]);
  http.Send("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  http.ReadToEnd();

  std::string oversized = PublisherHandshake();
  oversized += std::string("\x02\x00\x00\x00\x00\x7f\xff\xff\xff", 9);
  RawSocket large(at[0]);
  large.Send(oversized);
  large.ReadToEnd();

  std::string several = PublisherHandshake();
  AppendZmtpFrame(kZmtpMore, "first of two", several);
  AppendZmtpFrame(0, "second of two", several);
  RawSocket frames(at[0]);
  frames.Send(several);
  frames.ReadToEnd();

  std::string limit = PublisherHandshake();
  AppendZmtpFrame(0, std::string(ZmtpMesh::kLongestMessage + 1, 'x'), limit);
  RawSocket slightly(at[0]);
  slightly.Send(limit);
  slightly.ReadToEnd();

  EXPECT_FALSE(one.Has("first of two"));
  EXPECT_LT(one.heard_bytes(), ZmtpMesh::kLongestMessage);
  EXPECT_TRUE(Hears(one, two));
  EXPECT_TRUE(one.whole());
}

// From another address of the loopback than that of the replicas.
int StrangerFrom(const std::string& address, const Address& to) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const Address from = *Address::Numeric(address, 0);
  CHECK(::bind(fd, from.get(), from.size()) == 0);
  CHECK(::connect(fd, to.get(), to.size()) == 0);
  return fd;
}

TEST(ZmtpMesh, TwoHundredStrangersDoNotKeepAReplicaOut) {
  const std::vector<Address> at = {ClosedPort(), ClosedPort()};
  MeshNode one("one", at[0], Listed(at));
  std::vector<RawSocket> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.emplace_back(StrangerFrom("127.0.0.2", at[0]));
    strangers.back().Send(PublisherHandshake());
  }
  MeshNode two("two", at[1], Listed(at));
  EXPECT_TRUE(Hears(one, two));
  EXPECT_TRUE(Hears(two, one));
  size_t refused = 0;
  for (size_t i = ZmtpMesh::kMostStrangers; i < strangers.size(); ++i) {
    if (strangers[i].Read(1).empty()) ++refused;
  }
  EXPECT_EQ(refused, strangers.size() - ZmtpMesh::kMostStrangers);
}

TEST(ZmtpMesh, ClosesAConnectionThatIsSilent) {
  const Address at = ClosedPort();
  MeshNode one("one", at, Listed({at}), {}, milliseconds(50));
  RawSocket silent(StrangerFrom("127.0.0.2", at));
  silent.Send(PublisherHandshake());
  const std::string read = silent.ReadToEnd();
  EXPECT_THAT(read, HasSubstr("READY"));
  EXPECT_FALSE(silent.reset());
}

TEST(ZmtpMesh, FollowsANameWhoseAddressesChange) {
  DnsServer dns;
  const uint16_t port = ClosedPort().port();
  const auto place = [&](const std::string& host) { return *Address::Numeric(host, port); };
  const ResolverOptions asking{.servers = {dns.address()}};
  MeshReplicas peers;
  peers.places.push_back({"fathom-peers.test", port, MeshFinding::kDns});

  MeshNode one("one", place("127.0.0.11"), peers, asking);
  EXPECT_TRUE(Becomes([&] { return !one.status().problem.empty(); }));
  EXPECT_FALSE(one.up()) << "the name does not exist yet";

  dns.Set("fathom-peers.test", {.addresses = {"127.0.0.11"}, .ttl = 0});
  EXPECT_TRUE(Becomes([&] { return one.whole(); })) << "alone";

  MeshNode two("two", place("127.0.0.12"), peers, asking);
  dns.Set("fathom-peers.test", {.addresses = {"127.0.0.11", "127.0.0.12"}, .ttl = 0});
  EXPECT_TRUE(Hears(one, two));
  EXPECT_TRUE(Hears(two, one));

  dns.Set("fathom-peers.test", {.manner = DnsServer::Manner::kFail});
  EXPECT_TRUE(Becomes([&] { return !one.status().problem.empty(); }));
  EXPECT_TRUE(Hears(one, two)) << "those that are known stay";

  MeshNode three("three", place("127.0.0.13"), peers, asking);
  dns.Set("fathom-peers.test", {.addresses = {"127.0.0.11", "127.0.0.13"}, .ttl = 0});
  EXPECT_TRUE(Hears(three, one));
  ASSERT_TRUE(Becomes([&] { return one.whole() && three.whole(); }));
  one.Publish("not for two");
  EXPECT_TRUE(Becomes([&] { return three.Has("not for two"); }));
  EXPECT_FALSE(two.Has("not for two"));
}

TEST(ZmtpMesh, LogsOnceThatAReplicaIsNotReachedAndOnceThatItIsAgain) {
  const std::vector<Address> at = {ClosedPort(), ClosedPort()};
  MeshNode one("one", at[0], Listed(at));
  EXPECT_TRUE(Becomes([&] { return one.log().Count("Replica is not reached") == 1; }));
  EXPECT_THAT(one.log().text(), HasSubstr(at[1].ToString()));
  std::this_thread::sleep_for(milliseconds(1200));
  MeshNode two("two", at[1], Listed(at));
  EXPECT_TRUE(Becomes([&] { return one.log().Count("Replica is reached again") == 1; }));
  EXPECT_EQ(one.log().Count("Replica is not reached"), 1u);
  EXPECT_THAT(one.log().text(), HasSubstr("replica=two"));
}

TEST(ZmtpMesh, SaysThatItsAddressIsTaken) {
  const Address at = ClosedPort();
  MeshNode one("one", at, Listed({at}));
  Loop loop;
  Resolver resolver;
  Log log{-1, LogLevel::kOff};
  const auto second = ZmtpMesh::Create(loop, resolver, log, {.id = "two", .listen = at.ToString()});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().what, HasSubstr("in use"));
  const auto wrong = ZmtpMesh::Create(loop, resolver, log, {.id = "two", .listen = "7000"});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().what, HasSubstr("'7000' is not HOST:PORT"));
  const auto anywhere = ZmtpMesh::Create(loop, resolver, log, {.id = "two", .listen = ":0"});
  EXPECT_TRUE(anywhere) << anywhere.error().what;
}

}  // namespace
}  // namespace fathom
