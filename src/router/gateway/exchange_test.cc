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
#include "testing/exchange_rig.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ExchangeTest : public ExchangeRig {};

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
  options_.retry_answer_bytes = 0;  // it is passed on as it comes
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

constexpr std::string_view kBusyAnswer =
    "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 8\r\n\r\nown busy";

// Every request takes one retry; the reserve is used up after ten of them.
TEST_F(ExchangeTest, PassesOnTheWorkersOwnErrorWhenTheRetryBudgetIsEmpty) {
  options_.retry_budget = 0;
  for (int i = 0; i < 2; ++i) {
    AddWorker([](RawSocket& socket, const std::string&) { return socket.Send(kBusyAnswer); });
  }
  for (int i = 0; i < 15; ++i) {
    const std::string answer = Ask();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
    EXPECT_THAT(answer, EndsWith("\r\n\r\nown busy")) << "request " << i;
  }
  EXPECT_EQ(context_->metrics.Retries(RetryReason::kBusy).Value(), 10u);
  EXPECT_EQ(context_->metrics.retries_denied.Value(), 5u);
}

// The other worker leaves the fleet just before the error comes.
TEST_F(ExchangeTest, PassesOnTheWorkersOwnErrorWhenNoOtherIsLeftAfterAll) {
  std::vector<WorkerId> ids;
  for (size_t i = 0; i < 2; ++i) {
    AddWorker([this, &ids, i](RawSocket& socket, const std::string&) {
      fleet_.Remove(ids[1 - i]);
      return socket.Send(kBusyAnswer);
    });
  }
  for (const Member& member : fleet_.Current()->members()) ids.push_back(member.worker->id());
  EXPECT_THAT(Ask(), EndsWith("\r\n\r\nown busy"));
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
