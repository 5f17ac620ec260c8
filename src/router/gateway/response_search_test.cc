// Requests about responses that an engine keeps, between a raw client and raw workers.
#include "router/gateway/response_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>

#include "testing/exchange_rig.h"

namespace fathom {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string JsonWith(std::string_view status, std::string_view body) {
  return fmt::format("HTTP/1.1 {}\r\ncontent-length: {}\r\n\r\n{}", status, body.size(), body);
}

const std::string kNotHere =
    JsonWith("404 Not Found", R"({"error":{"message":"Response with id 'resp_1' not found."}})");
const std::string kNoRoute = JsonWith("404 Not Found", R"({"detail":"Not Found"})");
const std::string kStored = JsonWith("200 OK", R"({"id":"resp_1","output":[]})");

class ResponseSearchTest : public ExchangeRig {
 protected:
  ResponseSearchTest() { options_.steering.mode = RouterMode::kRoundRobin; }

  // A worker that answers questions about responses so, and says its letter to everything else.
  void AddKeeper(std::string about_responses, std::string letter) {
    AddWorker([this, about_responses, letter](RawSocket& socket, const std::string& head) {
      const bool asked = head.starts_with("GET /v1/responses/");
      if (asked) ++asked_;
      return socket.Send(asked ? about_responses : JsonWith("200 OK", letter));
    });
  }
  // A worker that never answers questions about responses.
  void AddSilentKeeper() {
    AddWorker([this](RawSocket& socket, const std::string& head) {
      if (!head.starts_with("GET /v1/responses/")) return socket.Send(JsonWith("200 OK", "s"));
      ++asked_;
      socket.ReadToEnd();
      return false;
    });
  }

  std::string Continue(std::string_view id = "resp_1") {
    RawSocket client = Client();
    const std::string body = fmt::format(R"({{"input":"x","previous_response_id":"{}"}})", id);
    client.Send(
        fmt::format("POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{}",
                    body.size(), body));
    return client.ReadAnswer();
  }

  std::atomic<int> asked_{0};
};

TEST_F(ResponseSearchTest, TheWorkerThatHasItGetsTheRequest) {
  AddKeeper(kNotHere, "a");
  AddKeeper(kStored, "b");
  AddKeeper(kNotHere, "c");
  for (int i = 0; i < 5; ++i) EXPECT_THAT(Continue(), EndsWith("\r\n\r\nb"));
  EXPECT_LE(asked_, 3) << "it was remembered";
}

TEST_F(ResponseSearchTest, NoWorkerHasIt) {
  AddKeeper(kNotHere, "a");
  AddKeeper(kNotHere, "b");
  for (int i = 0; i < 5; ++i) {
    const std::string answer = Continue();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 404 "));
    EXPECT_THAT(answer, HasSubstr(R"("code":"previous_response_not_found")"));
    EXPECT_THAT(answer, HasSubstr(R"("param":"previous_response_id")"));
    EXPECT_THAT(answer, HasSubstr("send the whole conversation"));
  }
  EXPECT_EQ(asked_, 2) << "each once";
}

TEST_F(ResponseSearchTest, AWorkerThatCannotBeAskedIsNotPassedOver) {
  AddKeeper(kNotHere, "a");
  AddKeeper(kNoRoute, "b");
  EXPECT_THAT(Continue(), EndsWith("\r\n\r\nb")) << "no other can have it";
}

TEST_F(ResponseSearchTest, WhereNoneCanBeAskedTheEnginesAnswer) {
  AddKeeper(kNoRoute, "a");
  AddKeeper(JsonWith("400 Bad Request", R"({"error":"Response store is disabled."})"), "b");
  EXPECT_THAT(Continue(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ResponseSearchTest, WorkersThatDoNotAnswerMayHaveIt) {
  AddSilentKeeper();
  AddSilentKeeper();
  const std::string answer = Continue();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr(R"("code":"response_not_located")"));
}

TEST_F(ResponseSearchTest, TheOnlyOneThatDoesNotAnswerIsTried) {
  AddKeeper(kNotHere, "a");
  AddSilentKeeper();
  EXPECT_THAT(Continue(), EndsWith("\r\n\r\ns"));
}

TEST_F(ResponseSearchTest, ALongResponseIsNotReadToItsEnd) {
  AddKeeper("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{", "a");
  AddKeeper(kNotHere, "b");
  EXPECT_THAT(Continue(), EndsWith("\r\n\r\na"));
}

TEST_F(ResponseSearchTest, NoIdBecomesAnotherRequest) {
  AddKeeper(kStored, "a");
  AddKeeper(kStored, "b");
  for (const char* id : {"..", "a/../../metrics", "x?y", "x y", R"(x\r\nhost: y)", "%2e", ""}) {
    EXPECT_THAT(Continue(id), StartsWith("HTTP/1.1 200 ")) << id;
  }
  EXPECT_THAT(Continue(std::string(300, 'x')), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(asked_, 0);
}

TEST_F(ResponseSearchTest, AFailureIsNotRetriedElsewhere) {
  AddKeeper(kNotHere, "a");
  AddWorker([](RawSocket& socket, const std::string& head) {
    if (head.starts_with("GET")) return socket.Send(kStored);
    return false;  // breaks the connection
  });
  AddKeeper(kNotHere, "c");
  const std::string answer = Continue();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 502 "));
  EXPECT_THAT(answer, HasSubstr("worker_failed"));
}

TEST_F(ResponseSearchTest, AProcessThatHasEndedHasLostIt) {
  options_.pool_size = 0;
  AddKeeper(kNotHere, "a");
  AddKeeper(kStored, "b");
  EXPECT_THAT(Continue(), EndsWith("b"));
  workers_[1]->Stop();
  const std::string answer = Continue();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(answer, HasSubstr("previous_response_not_found"));
}

TEST_F(ResponseSearchTest, AWorkerThatHasLeftHasLostIt) {
  AddKeeper(kNotHere, "a");
  AddKeeper(kStored, "b");
  EXPECT_THAT(Continue(), EndsWith("b"));
  directory_.Leave(context_->response_pins.Find("resp_1", TimePoint{})->worker);
  EXPECT_THAT(Continue(), HasSubstr("previous_response_not_found"));
}

TEST_F(ResponseSearchTest, AnErrorOfItsWorkerIsPassedOn) {
  AddKeeper(kNotHere, "a");
  AddWorker([](RawSocket& socket, const std::string& head) {
    return socket.Send(head.starts_with("GET") ? kStored : JsonWith("503 Busy", "full"));
  });
  EXPECT_THAT(Continue(), EndsWith("\r\n\r\nfull"));
}

TEST_F(ResponseSearchTest, ADeletedResponseIsForgotten) {
  AddKeeper(kNotHere, "a");
  AddKeeper(kStored, "b");
  EXPECT_THAT(Continue(), EndsWith("b"));
  const auto pinned = [&] { return context_->response_pins.Find("resp_1", TimePoint{}); };
  EXPECT_TRUE(pinned());
  RawSocket client = Client();
  client.Send("DELETE /v1/responses/resp_1 HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\nb"));
  EXPECT_FALSE(pinned());
}

TEST_F(ResponseSearchTest, AResponseThatNoWorkerHasCannotBeShown) {
  AddKeeper(kNotHere, "a");
  AddKeeper(kNotHere, "b");
  RawSocket client = Client();
  client.Send("GET /v1/responses/resp_1?stream=true HTTP/1.1\r\nhost: x\r\n\r\n");
  const std::string answer = client.ReadAnswer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(answer, HasSubstr(R"("code":"response_not_found")"));
  EXPECT_THAT(answer, Not(HasSubstr("previous")));
}

}  // namespace
}  // namespace fathom
