// The gateway between a raw client and raw workers: the test controls every byte and its time.
#include "router/gateway/exchange.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "router/gateway/gateway.h"
#include "testing/becomes.h"
#include "testing/loopback_server.h"
#include "testing/raw_socket.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    "transfer-encoding: chunked\r\n\r\n";
constexpr std::string_view kLastChunkText = "0\r\n\r\n";

std::string Chunked(std::string_view text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

// The chunks of an answer whose head has been read, up to the last.
std::vector<std::string> ReadChunks(RawSocket& client) {
  std::vector<std::string> chunks;
  for (;;) {
    const std::string size = client.ReadUntil("\r\n");
    if (size.empty()) {
      chunks.push_back("(cut off)");
      return chunks;
    }
    const size_t bytes = std::stoul(size, nullptr, 16);
    std::string chunk = client.Read(bytes + 2);
    if (bytes == 0) return chunks;
    chunks.push_back(chunk.substr(0, bytes));
  }
}

class ExchangeTest : public testing::Test {
 protected:
  ExchangeTest() {
    options_.session_ttl = Duration::zero();
    options_.steering.mode = RouterMode::kRoundRobin;
  }

  ~ExchangeTest() override {
    server_.reset();
    thread_.Call([this] { gateway_.reset(); });
    thread_.Stop();
    for (const auto& worker : workers_) worker->Stop();
  }

  // After what the desk still does: it pauses once more behind the last page.
  void StopPages() {
    struct Script {
      static Task<void> Run(Loop& loop) {
        co_await loop.Sleep(std::chrono::milliseconds(5));
        loop.Stop();
      }
    };
    page_loop_.Post([this] { Spawn(Script::Run(page_loop_)); });
  }

  // A worker that answers each request on a connection by the script, until the script returns
  // false.
  void AddWorker(std::function<bool(RawSocket&, const std::string& head)> script) {
    workers_.push_back(std::make_unique<ScriptedServer>([script](RawSocket& socket) {
      for (;;) {
        std::string head = socket.ReadUntil("\r\n\r\n");
        if (!head.ends_with("\r\n\r\n")) return;
        const size_t length = head.find("content-length: ");
        if (length != std::string::npos) socket.Read(std::stoul(head.substr(length + 16)));
        if (!script(socket, head)) return;
      }
    }));
    WorkerRequest request;
    request.url = workers_.back()->url();
    const WorkerId id = (*directory_.Join(request))->id();
    Fleet::ModelReport report;
    report.any_model = true;
    fleet_.SetModels(id, report);
    fleet_.SetHealthy(id);
  }
  // Sends `wire` and closes.
  void AddWorkerThatSends(std::string wire) {
    AddWorker([wire](RawSocket& socket, const std::string&) {
      socket.Send(wire);
      return false;
    });
  }
  void AddGoodWorker() {
    AddWorker([](RawSocket& socket, const std::string&) {
      return socket.Send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood");
    });
  }

  RawSocket Client() {
    if (!server_) {
      context_ = std::make_unique<GatewayContext>(options_, ModelLibrary(), fleet_, directory_,
                                                  resolver_, registry_, log_, 1);
      desk_ = std::make_unique<PageDesk>(*context_, page_loop_);
      gateway_ = std::make_unique<Gateway>(*context_, thread_.loop(), *desk_, 1);
      server_ = std::make_unique<LoopbackServer>(thread_, *gateway_);
    }
    return RawSocket(server_->address());
  }

  static std::string Request(std::string_view version = "1.1", std::string_view more = "") {
    return fmt::format(
        "POST /v1/chat/completions HTTP/{}\r\nhost: x\r\n{}content-length: 2\r\n\r\n{{}}", version,
        more);
  }

  // The complete answer to one request on a connection that is closed after it.
  std::string Ask(std::string_view version = "1.1") {
    RawSocket client = Client();
    client.Send(Request(version, "connection: close\r\n"));
    return client.ReadToEnd();
  }

  GatewayOptions options_;
  Log log_{2, LogLevel::kOff};
  Loop control_;    // never runs: no worker is probed
  Loop page_loop_;  // runs only where a test lets it
  Resolver resolver_;
  Registry registry_;
  Fleet fleet_{BreakerOptions{}};
  Prober prober_{control_, resolver_, fleet_, ProbeOptions{}, log_};
  Directory directory_{fleet_, prober_, [](const std::string&) { return std::nullopt; }, log_};
  std::vector<std::unique_ptr<ScriptedServer>> workers_;
  LoopThread thread_;
  std::unique_ptr<GatewayContext> context_;
  std::unique_ptr<PageDesk> desk_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<LoopbackServer> server_;
};

TEST_F(ExchangeTest, PassesEventsOnWholeHoweverTheWorkerCutsThem) {
  const std::vector<std::string> pieces = {"data: {\"a",       "\":1}\n",        "\nda",
                                           "ta: 2\n\ndata: 3", "\r\n\r\ndata: ", "[DONE]\n\n"};
  AddWorker([&](RawSocket& socket, const std::string&) {
    socket.Send(kStreamHead);
    for (const std::string& piece : pieces) {
      const std::string wire = Chunked(piece);
      socket.Send(wire.substr(0, 4));  // and each chunk in two segments
      std::this_thread::sleep_for(milliseconds(3));
      socket.Send(wire.substr(4));
      std::this_thread::sleep_for(milliseconds(3));
    }
    return socket.Send(kLastChunkText);
  });
  RawSocket client = Client();
  client.Send(Request());
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr("\r\ntransfer-encoding: chunked\r\n"));
  EXPECT_THAT(ReadChunks(client), ElementsAre("data: {\"a\":1}\n\n", "data: 2\n\n",
                                              "data: 3\r\n\r\n", "data: [DONE]\n\n"));
}

TEST_F(ExchangeTest, EndsAStreamThatIsTornWithAnErrorInsteadOfHalfAnEvent) {
  AddWorkerThatSends(std::string(kStreamHead) + Chunked("data: 1\n\n") + Chunked("data: {\"ha"));
  RawSocket client = Client();
  client.Send(Request());
  client.ReadUntil("\r\n\r\n");
  const auto chunks = ReadChunks(client);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0], "data: 1\n\n");
  EXPECT_THAT(chunks[1], StartsWith("data: {\"error\":{"));
  EXPECT_THAT(chunks[1], HasSubstr("\"worker_failed\""));
  EXPECT_THAT(chunks[1], EndsWith("\n\n"));
  EXPECT_EQ(client.ReadToEnd(), "") << "and the connection ends";
}

// A body of known length has no room for an error event.
TEST_F(ExchangeTest, ResetsAStreamOfKnownLengthThatIsTorn) {
  AddWorkerThatSends(
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 23\r\n\r\n"
      "data: 1\n\n");
  RawSocket client = Client();
  client.Send(Request());
  const std::string answer = client.ReadToEnd();
  EXPECT_TRUE(client.reset());
  EXPECT_THAT(answer, Not(HasSubstr("error")));
}

TEST_F(ExchangeTest, ResetsAnAnswerThatIsCutOffSoThatNobodyTakesItForWhole) {
  AddWorkerThatSends("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n");
  RawSocket client = Client();
  client.Send(Request("1.0"));
  EXPECT_THAT(client.ReadToEnd(), Not(HasSubstr("chunked")));
  EXPECT_TRUE(client.reset());
}

TEST_F(ExchangeTest, PassesOnABodyThatEndsWithTheConnection) {
  AddWorkerThatSends("HTTP/1.1 200 OK\r\n\r\nall of it");
  RawSocket client = Client();
  client.Send(Request());
  client.ReadUntil("\r\n\r\n");
  EXPECT_THAT(ReadChunks(client), ElementsAre("all of it"));
  client.Send(Request());  // the client's connection stays open
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  ReadChunks(client);
  const std::string old = Ask("1.0");
  EXPECT_THAT(old, HasSubstr("connection: close\r\n"));
  EXPECT_THAT(old, EndsWith("\r\n\r\nall of it"));
}

TEST_F(ExchangeTest, TakesTheChunksOffForAnHttp10Client) {
  AddWorkerThatSends(std::string(kStreamHead) + Chunked("data: 1\n\n") + Chunked("data: 2\n\n") +
                     std::string(kLastChunkText));
  const std::string answer = Ask("1.0");
  EXPECT_THAT(answer, Not(HasSubstr("transfer-encoding")));
  EXPECT_THAT(answer, EndsWith("\r\n\r\ndata: 1\n\ndata: 2\n\n"));
}

TEST_F(ExchangeTest, TellsAnHttp10ClientThatAskedForItThatTheConnectionStays) {
  AddGoodWorker();
  RawSocket client = Client();
  for (int i = 0; i < 2; ++i) {
    client.Send(Request("1.0", "connection: keep-alive\r\n"));
    const std::string answer = client.ReadAnswer();
    EXPECT_THAT(answer, HasSubstr("connection: keep-alive\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\ngood"));
  }
}

TEST_F(ExchangeTest, LosesNothingWhenManyChunksComeAtOnce) {
  for (const bool events : {true, false}) {
    std::string wire =
        events ? std::string(kStreamHead) : "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    std::string body;
    for (int i = 0; i < 300; ++i) {
      const std::string event = fmt::format("data: {}\n\n", i);
      wire += Chunked(event);
      body += event;
    }
    AddWorkerThatSends(wire + std::string(kLastChunkText));
    RawSocket client = Client();
    client.Send(Request());
    client.ReadUntil("\r\n\r\n");
    std::string got;
    for (const std::string& chunk : ReadChunks(client)) got += chunk;
    EXPECT_EQ(got, body);
    client.Close();
    server_.reset();
    fleet_.Remove(WorkerId::OfUrl(workers_.back()->url()));
  }
}

TEST_F(ExchangeTest, PassesOnAnEventThatIsLongerThanItHolds) {
  const std::string event = "data: " + std::string(700'000, 'x') + "\n\n";
  const std::string wire = std::string(kStreamHead) + Chunked("data: 1\n\n") + Chunked(event) +
                           Chunked("data: 3\n\n") + std::string(kLastChunkText);
  AddWorkerThatSends(wire);
  RawSocket client = Client();
  client.Send(Request());
  client.ReadUntil("\r\n\r\n");
  std::string got;
  for (const std::string& chunk : ReadChunks(client)) got += chunk;
  EXPECT_TRUE(got == "data: 1\n\n" + event + "data: 3\n\n");
}

TEST_F(ExchangeTest, SkipsInterimAnswers) {
  AddWorkerThatSends(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
      "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  const std::string answer = Ask();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("link")));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nok"));
}

TEST_F(ExchangeTest, PassesOnAnswersWithoutABody) {
  AddWorkerThatSends("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_THAT(Ask(), StartsWith("HTTP/1.1 204 No Content\r\n"));
}

class BadAnswerTest : public ExchangeTest, public testing::WithParamInterface<const char*> {};

TEST_P(BadAnswerTest, GoesToAnotherWorkerAndElseBecomesA502) {
  AddWorkerThatSends(GetParam());
  const std::string alone = Ask();
  EXPECT_THAT(alone, StartsWith("HTTP/1.1 502 Bad Gateway\r\n")) << GetParam();
  EXPECT_THAT(alone, HasSubstr("\"worker_failed\""));
  AddGoodWorker();
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Ask(), EndsWith("\r\n\r\ngood"));
}

INSTANTIATE_TEST_SUITE_P(
    Answers, BadAnswerTest,
    testing::Values("", "HTTP/1.1 20", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
                    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n",
                    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
                    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                    "transfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n"));

TEST_F(ExchangeTest, TakesAnEmptyAbortToAnotherWorker) {
  const std::string role = R"(data: {"choices":[{"delta":{"role":"assistant","content":""}}]})";
  const std::string abort = R"(data: {"choices":[{"delta":{},"finish_reason":"abort"}]})";
  AddWorker([=](RawSocket& socket, const std::string&) {
    socket.Send(std::string(kStreamHead) + Chunked(role + "\n\n"));
    std::this_thread::sleep_for(milliseconds(3));
    return socket.Send(Chunked(abort + "\n\n") + Chunked("data: [DONE]\n\n") +
                       std::string(kLastChunkText));
  });
  AddGoodWorker();
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Ask(), EndsWith("\r\n\r\ngood"));
}

TEST_F(ExchangeTest, UsesAKeptConnectionAgainAndAFreshOneWhenItWasClosed) {
  std::atomic<int> connections{0};
  workers_.push_back(std::make_unique<ScriptedServer>([&](RawSocket& socket) {
    ++connections;
    for (int i = 0; i < 3; ++i) {  // the fourth request finds the connection closing
      const std::string request = socket.ReadUntil("{}");
      if (!request.ends_with("{}")) return;
      if (i < 2) socket.Send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    }
  }));
  WorkerRequest request;
  request.url = workers_.back()->url();
  const WorkerId id = (*directory_.Join(request))->id();
  fleet_.SetModels(id, {.models = {}, .cards = {}, .any_model = true});
  fleet_.SetHealthy(id);
  RawSocket client = Client();
  for (int i = 0; i < 6; ++i) {
    client.Send(Request());
    EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\nok")) << i;
  }
  EXPECT_EQ(connections, 3);
}

TEST_F(ExchangeTest, KeepsItsKeysToItself) {
  std::string seen;
  AddWorker([&](RawSocket& socket, const std::string& head) {
    seen = head;
    return socket.Send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  options_.api_keys = {"router-key"};
  RawSocket client = Client();
  client.Send(Request("1.1", "authorization: Bearer router-key\r\n"));
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(seen, Not(HasSubstr("router-key")));
  client.Send(Request("1.1", "X-Api-Key: router-key\r\n"));
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(seen, Not(HasSubstr("router-key")));
}

TEST_F(ExchangeTest, ForwardsAClientsOwnKeyWhenItAsksForNone) {
  std::string seen;
  AddWorker([&](RawSocket& socket, const std::string& head) {
    seen = head;
    return socket.Send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  RawSocket client = Client();
  client.Send(Request("1.1", "authorization: Bearer theirs\r\nx-api-key: theirs-too\r\n"));
  client.ReadAnswer();
  EXPECT_THAT(seen, HasSubstr("\r\nauthorization: Bearer theirs\r\n"));
  EXPECT_THAT(seen, HasSubstr("\r\nx-api-key: theirs-too\r\n"));
}

TEST_F(ExchangeTest, LetsAClientLeaveWhileItWaitsForAPlace) {
  options_.max_in_flight = 1;
  std::atomic<bool> finish{false};
  AddWorker([&](RawSocket& socket, const std::string&) {
    while (!finish) std::this_thread::sleep_for(milliseconds(1));
    return socket.Send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  RawSocket first = Client();
  first.Send(Request());
  ASSERT_TRUE(Becomes([&] { return context_->admission.inside() == 1; }));
  RawSocket second = Client();
  second.Send(Request());
  ASSERT_TRUE(Becomes([&] { return context_->admission.waiting() == 1; }));
  second.Close();
  EXPECT_TRUE(Becomes([&] { return context_->admission.waiting() == 0; }));
  finish = true;
  EXPECT_THAT(first.ReadAnswer(), EndsWith("\r\n\r\nok"));
}

TEST_F(ExchangeTest, TellsTheWorkerAtOnceThatTheClientHasLeft) {
  std::atomic<bool> left{false};
  AddWorker([&](RawSocket& socket, const std::string&) {
    socket.Send(std::string(kStreamHead) + Chunked("data: 1\n\n"));
    left = socket.ReadToEnd().empty();
    return false;
  });
  RawSocket client = Client();
  client.Send(Request());
  client.ReadUntil("data: 1\n\n");
  client.FinishSending();
  EXPECT_TRUE(Becomes([&] { return left.load(); }));
}

// The relay waits for the client here, not for the worker.
TEST_F(ExchangeTest, TellsTheWorkerAlsoWhenTheClientLeavesWithoutHavingReadEverything) {
  std::atomic<bool> stuck{false};
  std::atomic<bool> left{false};
  AddWorker([&](RawSocket& socket, const std::string&) {
    socket.Send(kStreamHead);
    const std::string event = Chunked("data: " + std::string(100'000, 'x') + "\n\n");
    std::atomic<int> sent{0};
    std::thread watch([&] {
      for (int last = -1; last != sent || last == 0;) {
        last = sent;
        std::this_thread::sleep_for(milliseconds(60));
      }
      stuck = true;
    });
    while (socket.Send(event)) ++sent;
    left = true;
    watch.join();
    return false;
  });
  RawSocket client = Client();
  client.Send(Request());
  ASSERT_TRUE(Becomes([&] { return stuck.load(); }));
  EXPECT_FALSE(left);
  client.FinishSending();
  EXPECT_TRUE(Becomes([&] { return left.load(); }));
}

TEST_F(ExchangeTest, RequestsDoNotWaitForPages) {
  AddGoodWorker();
  RawSocket reader = Client();
  reader.Send("GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  // The loop that makes pages is busy: it does not run.
  EXPECT_THAT(Ask(), EndsWith("good"));
  EXPECT_THAT(Ask(), EndsWith("good"));
  const std::jthread pages([this] { page_loop_.Run(); });
  EXPECT_THAT(reader.ReadToEnd(), StartsWith("HTTP/1.1 200 "));
  StopPages();
}

Task<void> PutAnswer(PageDesk& desk, Loop& loop, const PageQuestion& question,
                     std::atomic<int>& status) {
  auto asking = desk.Ask(loop, question);
  const Answer answer = co_await asking;
  status = answer.status;
}

TEST_F(ExchangeTest, ThePagesThatAreWaitedForAreBounded) {
  Client();
  RequestHead head;
  head.method = "GET";
  const PageQuestion question{.head = head, .path = "/health", .body = ""};
  std::vector<std::atomic<int>> statuses(PageDesk::kMostAsked);
  std::atomic<int> refused{0};
  thread_.Call([&] {
    for (auto& status : statuses) Spawn(PutAnswer(*desk_, thread_.loop(), question, status));
    Spawn(PutAnswer(*desk_, thread_.loop(), question, refused));
  });
  EXPECT_EQ(refused, 503);
  const std::jthread pages([this] { page_loop_.Run(); });
  EXPECT_TRUE(Becomes([&] { return statuses.back() != 0; }));
  for (const auto& status : statuses) EXPECT_EQ(status, 503);  // there is no worker
  StopPages();
}

}  // namespace
}  // namespace fathom
