// Against a real nats-server, which is stopped, killed and misconfigured.
#include "io/nats/nats_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

#include "testing/becomes.h"
#include "testing/loop_thread.h"
#include "testing/nats_server.h"
#include "testing/raw_socket.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kSubject = "fathom.test.all";

// A client on a loop of its own.
class Party {
 public:
  explicit Party(NatsOptions options, std::string hears = std::string(kSubject))
      : client_(std::make_unique<NatsClient>(thread_.loop(), resolver_, std::move(options),
                                             std::vector<std::string>{std::move(hears)})) {
    thread_.Call([this] {
      client_->Start(
          [this](std::string_view bytes) {
            ++heard_;
            heard_bytes_ += bytes.size();
          },
          [this](bool, const std::string&) { ++changes_; });
    });
  }
  ~Party() {
    thread_.Call([this] {
      client_->Stop();
      client_.reset();
    });
    for (int i = 0; i < 3; ++i) thread_.Settle();  // what waits ends
    resolver_.Stop();
  }

  bool Publish(std::string_view bytes, std::string subject = std::string(kSubject)) {
    bool taken = false;
    thread_.Call([&] { taken = client_->Publish(std::move(subject), bytes); });
    return taken;
  }
  NatsStatus status() {
    NatsStatus status;
    thread_.Call([&] { status = client_->status(); });
    return status;
  }
  bool up() { return status().up; }
  bool Reports(std::string_view text) {
    return Becomes([&] { return status().problem.find(text) != std::string::npos; });
  }

  LoopThread& thread() { return thread_; }
  NatsClient& client() { return *client_; }
  int heard() const { return heard_; }
  size_t heard_bytes() const { return heard_bytes_; }
  int changes() const { return changes_; }

 private:
  Resolver resolver_;
  LoopThread thread_;
  std::unique_ptr<NatsClient> client_;
  std::atomic<int> heard_ = 0;
  std::atomic<size_t> heard_bytes_ = 0;
  std::atomic<int> changes_ = 0;
};

bool HearsFrom(Party& listener, Party& speaker) {
  const int before = listener.heard();
  return Becomes([&] {
    speaker.Publish("hello");
    return listener.heard() > before;
  });
}

class NatsClientTest : public testing::Test {
 public:
  void SetUp() override {
    if (!NatsServer::installed()) GTEST_SKIP() << "nats-server is not installed";
  }
};

NatsOptions At(const NatsServer& server) { return {.urls = {server.url()}, .name = "test"}; }

TEST_F(NatsClientTest, ConnectsOnceTheServerIsThereAndHearsOthersButNotItself) {
  NatsServer server;
  Party one(At(server));
  Party other(At(server));
  EXPECT_TRUE(one.Reports("127.0.0.1"));
  RecordProperty("problem", one.status().problem);
  EXPECT_FALSE(one.Publish("lost"));
  EXPECT_EQ(one.status().dropped, 1u);
  server.Start();
  ASSERT_TRUE(Becomes([&] { return one.up() && other.up(); }));
  EXPECT_EQ(one.status().problem, "");
  EXPECT_TRUE(HearsFrom(other, one));
  EXPECT_EQ(one.heard(), 0);
  EXPECT_GT(one.status().sent_bytes, 0u);
  EXPECT_GT(other.status().received_bytes, 0u);
}

TEST_F(NatsClientTest, ConnectsAgainAfterTheServerWasKilled) {
  NatsServer server;
  server.Start();
  Party one(At(server));
  Party other(At(server));
  ASSERT_TRUE(Becomes([&] { return one.up() && other.up(); }));
  server.Kill();
  ASSERT_TRUE(Becomes([&] { return !one.up() && !other.up(); }));
  EXPECT_NE(one.status().problem, "");
  server.Start();
  ASSERT_TRUE(Becomes([&] { return one.up() && other.up(); }));
  EXPECT_TRUE(HearsFrom(other, one));
}

TEST_F(NatsClientTest, FindsTheServerThatIsThereAmongSeveral) {
  NatsServer absent;
  NatsServer server;
  server.Start();
  Party one({.urls = {absent.url(), server.url()}});
  EXPECT_TRUE(Becomes([&] { return one.up(); }));
}

// The longest time between two looks at the clock, which the loop takes every millisecond.
Task<void> MeasureTurns(Loop& loop, const std::atomic<bool>& enough, Duration& longest) {
  TimePoint last = std::chrono::steady_clock::now();
  while (!enough) {
    co_await loop.Sleep(milliseconds(1));
    const TimePoint now = std::chrono::steady_clock::now();
    longest = std::max(longest, now - last);
    last = now;
  }
}

TEST_F(NatsClientTest, AStoppedServerHoldsUpNeitherTheLoopNorItsEnd) {
  NatsServer server;
  server.Start();
  auto one = std::make_unique<Party>(At(server));
  Party other(At(server));
  ASSERT_TRUE(Becomes([&] { return one->up() && other.up(); }));
  ASSERT_TRUE(HearsFrom(other, *one));

  std::atomic<bool> enough = false;
  Duration longest{};
  Duration usual{};  // of a loop that has nothing to do with it, on this machine now
  LoopThread idle;
  idle.loop().Post([&] { Spawn(MeasureTurns(idle.loop(), enough, usual)); });
  one->thread().loop().Post([&] { Spawn(MeasureTurns(one->thread().loop(), enough, longest)); });
  server.Pause();
  // 2 MB/s for six seconds: far more than fits into the buffers of a socket.
  const std::string state(100'000, 'x');
  for (int i = 0; i < 120; ++i) {
    one->Publish(state);
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_FALSE(one->up());
  EXPECT_GT(one->status().dropped, 0u);
  RecordProperty("problem", one->status().problem);
  enough = true;
  one->thread().Call([] {});
  std::this_thread::sleep_for(milliseconds(20));
  idle.Stop();
  one->thread().Call([&] { EXPECT_LT(longest, milliseconds(500) + 4 * usual) << Seconds(usual); });
  RecordProperty("longest_turn_us", static_cast<int>(longest.count() / 1000));

  server.Resume();
  ASSERT_TRUE(Becomes([&] { return one->up() && other.up(); }));
  EXPECT_TRUE(HearsFrom(other, *one));

  server.Pause();
  const TimePoint before = std::chrono::steady_clock::now();
  one.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(10));
  server.Resume();
}

TEST_F(NatsClientTest, BulkIsRefusedWhileTooMuchWaits) {
  NatsServer server;
  server.Start();
  Party one(At(server));
  ASSERT_TRUE(Becomes([&] { return one.up(); }));
  server.Pause();
  const std::string piece(256 << 10, 'x');
  one.thread().Call([&] {
    bool refused = false;
    for (int i = 0; i < 200 && !refused; ++i) {
      refused = !one.client().PublishBulk(std::string(kSubject), piece);
    }
    EXPECT_TRUE(refused);
    EXPECT_TRUE(one.client().Publish(std::string(kSubject), "a state"));
  });
  server.Resume();
}

TEST_F(NatsClientTest, SaysThatThePasswordIsWrongAndDoesNotRepeatIt) {
  NatsServer server({"--user", "ann", "--pass", "right"});
  server.Start();
  NatsOptions options = At(server);
  options.user = "ann";
  options.password = "wrong-secret";
  {
    Party refused(options);
    EXPECT_TRUE(refused.Reports("Authorization Violation"));
    std::this_thread::sleep_for(seconds(1));  // several attempts
    EXPECT_THAT(refused.status().problem,
                AllOf(HasSubstr("Authorization Violation"), Not(HasSubstr("wrong-secret"))));
  }
  options.password = "right";
  Party accepted(options);
  EXPECT_TRUE(Becomes([&] { return accepted.up(); }));
}

TEST_F(NatsClientTest, LogsInWithAToken) {
  NatsServer server({"--auth", "t0ken"});
  server.Start();
  NatsOptions options = At(server);
  options.token = "t0ken";
  Party one(options);
  EXPECT_TRUE(Becomes([&] { return one.up(); }));
}

// A folder with what a server and its clients need.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/fathom_nats_test.XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name) << text;
    return *this / name;
  }
  void MakeCertificate(const std::string& name, const std::string& more) const {
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=" +
        name + " -keyout " + (*this / name) + ".key -out " + (*this / name) + ".pem " + more +
        " >/dev/null 2>&1";
    CHECK(std::system(command.c_str()) == 0);
  }

 private:
  std::string path_;
};

TEST_F(NatsClientTest, LogsInWithAnNkeySeed) {
  const Folder folder;
  const std::string config =
      folder.Write("nats.conf",
                   "authorization { users = [ "
                   "{ nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 } ] }\n");
  NatsServer server({"-c", config});
  server.Start();
  NatsOptions options = At(server);
  options.nkey_seed_file = folder / "user.nk";
  Party one(options);
  EXPECT_TRUE(one.Reports("user.nk"));
  folder.Write("user.nk", "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n");
  EXPECT_TRUE(Becomes([&] { return one.up(); })) << one.status().problem;
}

// An operator, its account and the account's user, as nsc makes them; none of them expires.
constexpr std::string_view kOperatorJwt =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJpYXQiOjE3MDAwMDAwMDAsImlzcyI6Ik9BR"
    "VI1TDI3WlJVUVlESEpYUE5LQlJaUjRQMlVYM0RLUzVLSU42SlA3WjVQRVIzMkxLNU9ORk1BIiwibmFtZSI6I"
    "m9wIiwic3ViIjoiT0FFUjVMMjdaUlVRWURISlhQTktCUlpSNFAyVVgzREtTNUtJTjZKUDdaNVBFUjMyTEs1T"
    "05GTUEiLCJuYXRzIjp7InR5cGUiOiJvcGVyYXRvciIsInZlcnNpb24iOjJ9LCJqdGkiOiJNT1dNNkxTNUxFU"
    "zNOTlpGNzIySEZCNVU3M1lONlRVTVhDNEpZQU9CU0kzWUFBUURUV0RRIn0.O3pPg8ayDHFfCP3SYKTKy7wRY"
    "dR7OVK8f-ScYcNjJh1AS5zox_lzceioUuqEgwA5-OkSO2-hW8Spe2u8AzIGDQ";
constexpr std::string_view kAccount = "ADRYU763V2MJ3CHK4AIS2DVNYCOFJ4W37XDSTHCBH4ARUKK7SMCVKXF6";
constexpr std::string_view kAccountJwt =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJpYXQiOjE3MDAwMDAwMDAsImlzcyI6Ik9BR"
    "VI1TDI3WlJVUVlESEpYUE5LQlJaUjRQMlVYM0RLUzVLSU42SlA3WjVQRVIzMkxLNU9ORk1BIiwibmFtZSI6I"
    "mFjYyIsInN1YiI6IkFEUllVNzYzVjJNSjNDSEs0QUlTMkRWTllDT0ZKNFczN1hEU1RIQ0JINEFSVUtLN1NNQ"
    "1ZLWEY2IiwibmF0cyI6eyJ0eXBlIjoiYWNjb3VudCIsInZlcnNpb24iOjIsImxpbWl0cyI6eyJzdWJzIjotM"
    "SwiZGF0YSI6LTEsInBheWxvYWQiOi0xLCJpbXBvcnRzIjotMSwiZXhwb3J0cyI6LTEsIndpbGRjYXJkcyI6d"
    "HJ1ZSwiY29ubiI6LTEsImxlYWYiOi0xfX0sImp0aSI6IkZOTFJJNUNPQ01IV1VTWjJFRDRPQkpNT0taMkhON"
    "Uc0REg2M1g0T0pZTUQ3TU1RMkpITFEifQ.rF-XDk0ymFZZTbb8bVQuqxyTeiPdSLv4Nb5ueDTYZqV02i6Kxf"
    "a5GK8-bllsh0LhjsZ4Rq_Aj-fsvFqDgqZ3Bw";
constexpr std::string_view kUserJwt =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJpYXQiOjE3MDAwMDAwMDAsImlzcyI6IkFEU"
    "llVNzYzVjJNSjNDSEs0QUlTMkRWTllDT0ZKNFczN1hEU1RIQ0JINEFSVUtLN1NNQ1ZLWEY2IiwibmFtZSI6I"
    "nVzZXIiLCJzdWIiOiJVQVA1SkdKSlJCNEFYWkk0Uko3TUFMQ09QUDNZV05TUlE0UFJLMzNaVUU0R1FRV0c1N"
    "0NQQTNPUyIsIm5hdHMiOnsidHlwZSI6InVzZXIiLCJ2ZXJzaW9uIjoyLCJzdWJzIjotMSwiZGF0YSI6LTEsI"
    "nBheWxvYWQiOi0xLCJwdWIiOnt9LCJzdWIiOnt9fSwianRpIjoiVkxUWlFVR0w1U0E3TVIzN0syVUQyQ1pCN"
    "ldMVEFGSlBWRU1FQVNWWEVZTTVaSjZKR0NQUSJ9.HcrXmx3sEkkf_f_0fQhOVhFoydQqEiSbZ3VGYJq91ssb"
    "xma8y_-WID8lS5DUwM9Dx5u5wu1bPSW5uae_av36Dw";
constexpr std::string_view kUserSeed = "SUAG6LOFNWM7V7HF3XFXJ4MRH27VXGK4ADHIZTEP6YDQ4LQBQBCQ3FI32M";

TEST_F(NatsClientTest, LogsInWithAFileOfCredentials) {
  const Folder folder;
  const std::string config = folder.Write(
      "nats.conf", fmt::format("operator: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {} }}\n",
                               kOperatorJwt, kAccount, kAccountJwt));
  NatsServer server({"-c", config});
  server.Start();
  NatsOptions options = At(server);
  options.credentials_file = folder.Write("user.creds", "nothing of a user\n");
  Party one(options);
  EXPECT_TRUE(one.Reports("user.creds: no user's JWT"));
  folder.Write("user.creds",
               fmt::format("-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n"
                           "-----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
                           kUserJwt, kUserSeed));
  EXPECT_TRUE(Becomes([&] { return one.up(); })) << one.status().problem;
}

TEST_F(NatsClientTest, ConnectsUnderTlsAndRefusesAnUnknownAuthorityAndAWrongName) {
  const Folder folder;
  folder.MakeCertificate("ours", "-addext subjectAltName=IP:127.0.0.1");
  folder.MakeCertificate("other", "-addext subjectAltName=DNS:elsewhere");
  const auto serving = [&](const std::string& name) {
    return std::vector<std::string>{"--tls", "--tlscert", folder / (name + ".pem"), "--tlskey",
                                    folder / (name + ".key")};
  };
  NatsServer server(serving("ours"));
  server.Start();
  NatsOptions options = At(server);
  options.tls = true;
  options.ca_file = folder / "ours.pem";
  Party one(options);
  EXPECT_TRUE(Becomes([&] { return one.up(); })) << one.status().problem;

  options.ca_file = folder / "other.pem";
  Party suspicious(options);
  EXPECT_TRUE(suspicious.Reports("certificate")) << suspicious.status().problem;

  NatsServer renamed(serving("other"));
  renamed.Start();
  options = At(renamed);
  options.tls = true;
  options.ca_file = folder / "other.pem";
  Party elsewhere(options);
  EXPECT_TRUE(elsewhere.Reports("mismatch")) << elsewhere.status().problem;
  EXPECT_FALSE(elsewhere.up());
}

TEST_F(NatsClientTest, ReportsWhatTheServerDoesNotPermitOrAccept) {
  const Folder folder;
  const std::string config =
      folder.Write("nats.conf",
                   "max_payload: 1000\n"
                   "authorization { users = [ { user: ann, password: pw, permissions: { "
                   "publish: \"fathom.test.>\", subscribe: \"fathom.test.>\" } } ] }\n");
  NatsServer server({"-c", config});
  server.Start();
  NatsOptions options = At(server);
  options.user = "ann";
  options.password = "pw";
  options.longest_message = 2000;
  Party one(options);
  Party other(options);
  EXPECT_TRUE(one.Reports("max_payload"));
  EXPECT_TRUE(one.up());
  one.Publish(std::string(1500, 'x'));
  EXPECT_TRUE(Becomes([&] { return one.status().dropped == 1; }));
  EXPECT_TRUE(HearsFrom(other, one)) << "the connection stays";
  one.Publish("x", "forbidden");
  EXPECT_TRUE(one.Reports("ermission")) << one.status().problem;
  EXPECT_TRUE(one.up());
}

TEST_F(NatsClientTest, ComesBackAfterTheServerHadTooMuchForIt) {
  const Folder folder;
  NatsServer server({"-c", folder.Write("nats.conf", "max_pending: 1MB\nmax_payload: 1MB\n")});
  server.Start();
  Party speaker(At(server));
  Party listener(At(server));
  ASSERT_TRUE(HearsFrom(listener, speaker));
  const int changes = listener.changes();
  std::promise<void> go;
  std::promise<void> held;
  listener.thread().loop().Post([&] {
    held.set_value();
    go.get_future().wait();
  });
  held.get_future().wait();
  // More than fits into the buffers of both sockets and into the server.
  const std::string state(100'000, 'x');
  EXPECT_TRUE(Becomes([&] {
    for (int i = 0; i < 10; ++i) speaker.Publish(state);
    return speaker.status().sent_bytes >= 300 * state.size();
  }));
  go.set_value();
  EXPECT_TRUE(Becomes([&] { return listener.changes() > changes; })) << "it was cut off";
  EXPECT_TRUE(HearsFrom(listener, speaker));
}

TEST_F(NatsClientTest, ShowsItsCertificate) {
  const Folder folder;
  folder.MakeCertificate("ours", "-addext subjectAltName=IP:127.0.0.1");
  folder.MakeCertificate("client", "");
  NatsServer server({"--tlsverify", "--tlscert", folder / "ours.pem", "--tlskey",
                     folder / "ours.key", "--tlscacert", folder / "client.pem"});
  server.Start();
  NatsOptions options = At(server);
  options.ca_file = folder / "ours.pem";
  {
    Party stranger(options);
    EXPECT_TRUE(stranger.Reports("certificate")) << stranger.status().problem;
    EXPECT_FALSE(stranger.up());
    RecordProperty("problem", stranger.status().problem);
  }
  options.certificate_file = folder / "client.pem";
  options.key_file = folder / "client.key";
  Party known(options);  // the server asks for TLS by itself
  EXPECT_TRUE(Becomes([&] { return known.up(); })) << known.status().problem;
}

TEST_F(NatsClientTest, RefusesAServerWithoutTheTlsThatItWants) {
  NatsServer server;
  server.Start();
  NatsOptions options = At(server);
  options.tls = true;
  Party one(options);
  EXPECT_TRUE(one.Reports("has no TLS"));
  EXPECT_FALSE(one.up());
}

// --- servers that are none -------------------------------------------------------------------

NatsOptions At(const ScriptedServer& server) {
  return {.urls = {"nats://" + server.address().ToString()}, .connect_time = milliseconds(500)};
}

TEST(NatsClientStrangers, EachHasItsProblem) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak as a NATS server"},
      {"INFO {" + std::string(80'000, 'x'), "does not speak as a NATS server"},
      {"PING\r\n", "does not speak as a NATS server"},
      {"INFO {\r\n", "not JSON"},
      {"-ERR 'maximum connections exceeded'\r\n", "maximum connections exceeded"},
      {"INFO {\"tls_required\":true}\r\nPONG\r\n", "without the TLS"},
      {"INFO {}\r\n-ERR 'Au\x1b[31m'\r\n", "Au?[31m"},
      {"INFO {}\r\nPING\r\n", "does not answer"},
      {"", "does not answer"},
  };
  for (const auto& [said, problem] : cases) {
    ScriptedServer server([&](RawSocket& socket) {
      socket.Send(said);
      socket.ReadToEnd();
    });
    Party one(At(server));
    EXPECT_TRUE(one.Reports(problem)) << said.substr(0, 60) << ": " << one.status().problem;
    EXPECT_FALSE(one.up());
  }
}

TEST(NatsClientStrangers, AnswersPingsPassesOverWhatIsTooLongAndSaysWhyItWasCutOff) {
  std::promise<std::string> answer;
  std::atomic<bool> first = true;
  ScriptedServer server([&](RawSocket& socket) {
    socket.Send("INFO {\"max_payload\":1000}\r\n");
    if (!first.exchange(false)) {
      socket.ReadToEnd();
      return;
    }
    socket.ReadUntil("PING\r\n");
    socket.Send("PONG\r\nMSG a 1 3000\r\n" + std::string(3000, 'x') +
                "\r\nMSG a 1 2\r\nhi\r\nPING\r\n");
    answer.set_value(socket.ReadUntil("PONG\r\n"));
    socket.Send("-ERR 'Stale Connection'\r\n");
  });
  NatsOptions options = At(server);
  options.longest_message = 1000;
  options.ping_every = seconds(100);
  Party one(options);
  EXPECT_EQ(answer.get_future().get(), "PONG\r\n");
  EXPECT_TRUE(one.Reports("Stale Connection"));
  EXPECT_EQ(one.heard(), 1);
  EXPECT_EQ(one.heard_bytes(), 2u);
}

}  // namespace
}  // namespace fathom
