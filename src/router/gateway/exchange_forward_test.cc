// Requests for models that other replicas serve: the gateway between a raw client and raw replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "router/gateway/exchange.h"
#include "testing/becomes.h"
#include "testing/exchange_rig.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kPeerAnswer =
    "HTTP/1.1 200 OK\r\nx-fathom-worker: 7\r\nx-fathom-cached-tokens: 16\r\n"
    "content-length: 8\r\n\r\nits word";
constexpr std::string_view kMisdirected =
    "HTTP/1.1 421 Misdirected Request\r\ncontent-length: 0\r\n\r\n";

class ExchangeForwardTest : public ExchangeRig {
 protected:
  ExchangeForwardTest() : ExchangeRig({}, *ModelSlice::Of({"here*"})) {
    options_.replica_id = "self";
    AddGoodWorker();
  }
  void TearDown() override {
    ExchangeRig::TearDown();
    for (const auto& peer : servers_) peer->Stop();
  }

  // A replica that answers each request with these bytes; empty: it closes the connection.
  void AddPeer(const std::string& id, std::string_view answer, bool keeps = true) {
    servers_.push_back(std::make_unique<ScriptedServer>(
        [this, id, answer = std::string(answer), keeps](RawSocket& socket) {
          while (TakeRequest(id, socket) && !answer.empty() && socket.Send(answer) && keeps) {
          }
        }));
    AddPeerAt(id, servers_.back()->url());
  }
  void AddPeerAt(const std::string& id, const std::string& url) {
    told_.push_back({id, url, {"there"}});
  }
  bool TakeRequest(const std::string& id, RawSocket& socket) {
    std::string request = socket.ReadUntil("\r\n\r\n");
    const size_t length = request.find("content-length: ");
    if (length == std::string::npos) return false;
    request += socket.Read(std::stoul(request.substr(length + 16)));
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    asked_.push_back(id);
    return true;
  }

  std::string AskModel(std::string_view model, std::string_view more = "") {
    RawSocket client = Connect();
    client.Send(RequestFor(model, fmt::format("connection: close\r\n{}", more)));
    return client.ReadToEnd();
  }
  RawSocket Connect() {
    RawSocket client = Client();
    context_->peers.Set(told_);
    return client;
  }
  static std::string RequestFor(std::string_view model, std::string_view more) {
    const std::string body = fmt::format(R"({{"model":"{}"}})", model);
    return fmt::format(
        "POST /v1/chat/completions?a=b HTTP/1.1\r\nhost: x\r\n{}content-length: {}\r\n\r\n{}", more,
        body.size(), body);
  }
  std::vector<std::string> Asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::string FirstRequest() {
    const std::lock_guard lock(mutex_);
    return requests_.empty() ? "" : requests_.front();
  }

  std::vector<std::unique_ptr<ScriptedServer>> servers_;
  std::vector<PeerReplica> told_;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::vector<std::string> asked_;
};

TEST_F(ExchangeForwardTest, ServesItsOwnModelsItself) {
  AddPeer("other", kPeerAnswer);
  EXPECT_THAT(AskModel("here"), EndsWith("\r\n\r\ngood"));
  EXPECT_THAT(AskModel("here-too", "x-fathom-forwarded: other\r\n"), EndsWith("\r\n\r\ngood"));
  EXPECT_TRUE(Asked().empty());
}

TEST_F(ExchangeForwardTest, ForwardsARequestAsItCameAndSaysWhoForwards) {
  AddPeer("other", kPeerAnswer);
  const std::string answer =
      AskModel("there",
               "authorization: Bearer key\r\nx-session-id: s\r\nx-fathom-routing: temperature=0\r\n"
               "x-request-id: mine\r\ntransfer-encoding-x: y\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nits word"));
  EXPECT_THAT(answer, HasSubstr("\r\nx-fathom-replica: other\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nx-fathom-worker: 7\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nx-fathom-cached-tokens: 16\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nx-request-id: mine\r\n"));
  const std::string request = FirstRequest();
  EXPECT_THAT(request, StartsWith("POST /v1/chat/completions?a=b HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nx-fathom-forwarded: self\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nauthorization: Bearer key\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nx-session-id: s\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nx-fathom-routing: temperature=0\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nx-request-id: mine\r\n"));
  EXPECT_THAT(request, Not(HasSubstr("connection: close")));
  EXPECT_THAT(request, EndsWith("\r\n\r\n{\"model\":\"there\"}"));
  EXPECT_EQ(context_->peers.counts().forwarded, 1u);
  EXPECT_EQ(context_->admission.inside(), 0);
}

TEST_F(ExchangeForwardTest, PassesAStreamOnAsItComes) {
  AddPeer("other", std::string(kStreamHead) + Chunked("data: 1\n\n") + Chunked("data: [DONE]\n\n") +
                       std::string(kLastChunkText));
  RawSocket client = Connect();
  for (int i = 0; i < 2; ++i) {
    client.Send(RequestFor("there", ""));
    client.ReadUntil("\r\n\r\n");
    std::string events;
    for (const std::string& chunk : ReadChunks(client)) events += chunk;
    EXPECT_EQ(events, "data: 1\n\ndata: [DONE]\n\n");
  }
}

TEST_F(ExchangeForwardTest, EndsAStreamThatIsTornWithAnError) {
  AddPeer("other", std::string(kStreamHead) + Chunked("data: 1\n\n") + Chunked("data: {\"ha"),
          false);
  RawSocket client = Connect();
  client.Send(RequestFor("there", ""));
  client.ReadUntil("\r\n\r\n");
  const auto chunks = ReadChunks(client);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0], "data: 1\n\n");
  EXPECT_THAT(chunks[1], HasSubstr("\"replica_failed\""));
  // It is counted after its last byte has left.
  const auto& failed = context_->peers.counts().failed;
  for (int i = 0; i < 10'000 && failed == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(context_->peers.counts().forwarded, 0u);
}

TEST_F(ExchangeForwardTest, PassesTheErrorsOfTheReplicaOn) {
  AddPeer("other", "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno");
  EXPECT_THAT(AskModel("there"), EndsWith("\r\n\r\nno"));
  told_.clear();
  AddPeer("busy", "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy");
  EXPECT_THAT(AskModel("there"), EndsWith("\r\n\r\nbusy")) << "no other replica can be asked";
}

TEST_F(ExchangeForwardTest, RefusesAModelThatNoReplicaServes) {
  AddPeer("other", kPeerAnswer);
  told_.push_back({"mute", "", {"secret"}});
  const std::string answer = AskModel("nowhere");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(answer, HasSubstr("\"model_not_found\""));
  EXPECT_THAT(answer, HasSubstr("no worker serves the model 'nowhere'"));
  const std::string unreachable = AskModel("secret");
  EXPECT_THAT(unreachable, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(unreachable, HasSubstr("replica 'mute' does, but has no --replica-url"));
  EXPECT_TRUE(Asked().empty());
}

TEST_F(ExchangeForwardTest, NeverForwardsARequestThatWasForwarded) {
  AddPeer("other", kPeerAnswer);
  const std::string answer = AskModel("there", "X-Fathom-Forwarded: third\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 421 Misdirected Request\r\n"));
  EXPECT_THAT(answer, HasSubstr("\"model_not_served_here\""));
  EXPECT_THAT(answer, HasSubstr("replica 'third'"));
  EXPECT_THAT(answer, HasSubstr("replica 'self'"));
  EXPECT_TRUE(Asked().empty());
  EXPECT_EQ(context_->peers.counts().misdirected, 1u);
}

TEST_F(ExchangeForwardTest, NamesTheReplicaThatIsAway) {
  AddPeer("away", kPeerAnswer);
  servers_.back()->Stop();
  const std::string answer = AskModel("there");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("\"replica_unavailable\""));
  EXPECT_THAT(answer, HasSubstr("replica 'away', which cannot be reached"));
  EXPECT_THAT(answer, HasSubstr("\r\nretry-after: 1\r\n"));
  EXPECT_EQ(context_->peers.counts().failed, 1u);
}

TEST_F(ExchangeForwardTest, NamesTheReplicaThatDoesNotServeTheModelAfterAll) {
  AddPeer("old", kMisdirected);
  const std::string answer = AskModel("there");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("replica 'old', which does not serve it"));
}

TEST_F(ExchangeForwardTest, AsksAnotherReplicaOnceIfTheFirstFails) {
  const std::vector<std::string> failures = {
      "", std::string(kMisdirected), "garbage\r\n\r\n",
      "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
      "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"};
  for (const std::string& failure : failures) {
    told_.clear();
    AddPeer("bad", failure, false);
    AddPeer("good", kPeerAnswer);
    // Each is the first that is asked.
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(AskModel("there"), EndsWith("\r\n\r\nits word")) << failure;
    }
  }
}

TEST_F(ExchangeForwardTest, AsksNoThirdReplica) {
  for (const char* id : {"a", "b", "c"}) AddPeer(id, "", false);
  EXPECT_THAT(AskModel("there"), HasSubstr("closed the connection before it answered"));
  EXPECT_EQ(Asked().size(), 2u);
}

TEST_F(ExchangeForwardTest, DoesNotRepeatARequestThatTookTooLong) {
  // All that the other replica may take: its queues, its attempts, and a second for the way.
  options_.first_byte_timeout = std::chrono::milliseconds(50);
  options_.queue_timeout = options_.dispatch_timeout = Duration::zero();
  const auto silent = [this](RawSocket& socket) {
    TakeRequest("silent", socket);
    socket.ReadToEnd();
  };
  for (int i = 0; i < 2; ++i) {
    servers_.push_back(std::make_unique<ScriptedServer>(silent));
    AddPeerAt("silent", servers_.back()->url());
  }
  const std::string answer = AskModel("there");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 504 "));
  EXPECT_THAT(answer, HasSubstr("replica 'silent', which did not answer in time"));
  EXPECT_EQ(Asked().size(), 1u);
}

// The replica may close a kept connection at the moment at which it is used again.
TEST_F(ExchangeForwardTest, ConnectsAgainIfAKeptConnectionWasClosed) {
  std::atomic<int> connections = 0;
  servers_.push_back(std::make_unique<ScriptedServer>([&](RawSocket& socket) {
    ++connections;
    if (!TakeRequest("other", socket)) return;
    socket.Send(kPeerAnswer);
    TakeRequest("other", socket);
  }));
  AddPeerAt("other", servers_.back()->url());
  EXPECT_THAT(AskModel("there"), EndsWith("its word"));
  EXPECT_THAT(AskModel("there"), EndsWith("its word"));
  EXPECT_EQ(connections, 2);
  EXPECT_THAT(Asked(), ElementsAre("other", "other", "other"));
}

TEST_F(ExchangeForwardTest, LeavesTheReplicaWhenTheClientLeaves) {
  std::atomic<bool> left = false;
  servers_.push_back(std::make_unique<ScriptedServer>([&](RawSocket& socket) {
    TakeRequest("other", socket);
    socket.ReadToEnd();
    left = true;
  }));
  AddPeerAt("other", servers_.back()->url());
  {
    RawSocket client = Connect();
    client.Send(RequestFor("there", ""));
    EXPECT_TRUE(Becomes([&] { return !Asked().empty(); }));
  }
  EXPECT_TRUE(Becomes([&] { return left.load(); }));
  EXPECT_TRUE(Becomes([&] { return context_->admission.inside() == 0; }));
  EXPECT_EQ(context_->peers.counts().failed, 0u);
}

// Another router, with a worker of its own.
class RealReplica {
 public:
  RealReplica(LoopThread& thread, Resolver& resolver, Log& log, const std::string& id,
              std::vector<std::string> models, const std::string& worker)
      : thread_(thread),
        fleet_({}, Fleet::kMaxWorkers, *ModelSlice::Of(std::move(models))),
        prober_(control_, resolver, fleet_, ProbeOptions{}, log),
        directory_(fleet_, prober_, [](const std::string&) { return std::nullopt; }, log) {
    options_.replica_id = id;
    options_.steering.mode = RouterMode::kRoundRobin;
    options_.api_keys = {"key"};
    WorkerRequest request;
    request.url = worker;
    const WorkerId joined = (*directory_.Join(request))->id();
    fleet_.SetModels(joined, {.models = {}, .cards = {}, .any_model = true});
    fleet_.SetHealthy(joined);
    context_ = std::make_unique<GatewayContext>(options_, ModelLibrary(), fleet_, directory_,
                                                resolver, registry_, log, 1);
    desk_ = std::make_unique<PageDesk>(*context_, control_);
    gateway_ = std::make_unique<Gateway>(*context_, thread.loop(), *desk_, 1);
    server_ = std::make_unique<LoopbackServer>(thread, *gateway_);
  }
  ~RealReplica() {
    server_.reset();
    thread_.Call([this] { gateway_.reset(); });
  }

  std::string url() const { return "http://" + server_->address().ToString(); }
  GatewayContext& context() { return *context_; }

 private:
  LoopThread& thread_;
  GatewayOptions options_;
  Loop control_;  // never runs
  Registry registry_;
  Fleet fleet_;
  Prober prober_;
  Directory directory_;
  std::unique_ptr<GatewayContext> context_;
  std::unique_ptr<PageDesk> desk_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<LoopbackServer> server_;
};

TEST_F(ExchangeForwardTest, ForwardsFromGatewayToGatewayOnce) {
  servers_.push_back(std::make_unique<ScriptedServer>([this](RawSocket& socket) {
    if (TakeRequest("worker", socket)) socket.Send(kPeerAnswer);
  }));
  RawSocket client = Client();
  RealReplica other(thread_, resolver_, log_, "other", {"there"}, servers_.back()->url());
  context_->peers.Set({{"other", other.url(), {"there", "moved"}}});
  // Each would forward the moved model to the other, for ever.
  other.context().peers.Set({{"self", "http://" + server_->address().ToString(), {}}});
  client.Send(RequestFor("there", "authorization: Bearer key\r\n"));
  const std::string answer = client.ReadAnswer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nx-fathom-replica: other\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nx-fathom-worker: "));
  EXPECT_THAT(answer, EndsWith("its word"));
  EXPECT_THAT(FirstRequest(), Not(HasSubstr("x-fathom-forwarded")));
  EXPECT_THAT(FirstRequest(), Not(HasSubstr("Bearer"))) << "workers do not get the routers' keys";

  client.Send(RequestFor("moved", "authorization: Bearer key\r\n"));
  const std::string moved = client.ReadAnswer();
  EXPECT_THAT(moved, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(moved, HasSubstr("replica 'other', which does not serve it"));
  EXPECT_EQ(other.context().peers.counts().misdirected, 1u);
  EXPECT_EQ(other.context().peers.counts().forwarded, 0u);

  client.Send(RequestFor("there", ""));
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 401 ")) << "the other has a key";
  // The other's server waits for connections that this gateway keeps.
  client.Close();
  server_.reset();
  thread_.Call([this] { gateway_.reset(); });
}

}  // namespace
}  // namespace fathom
