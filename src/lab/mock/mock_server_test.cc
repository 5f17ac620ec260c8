#include "testing/mock_server_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(MockServerTest, AnswersAChatInOnePiece) {
  Start();
  const auto answer = Post(kChatPath, R"({"messages":[{"role":"user","content":"a b c"}],)"
                                      R"("max_tokens":3})");
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(answer->status, 200);
  const auto json = Json::Parse(answer->body);
  ASSERT_TRUE(json) << answer->body;
  const Json& choice = json->Find("choices")->array()->front();
  EXPECT_EQ(*choice.Find("message")->Find("content")->string(), "m:0 m:1 m:2 ");
  EXPECT_EQ(*choice.Find("finish_reason")->string(), "length");
  EXPECT_EQ(json->Find("usage")->Find("total_tokens")->unsigned_integer(), 6u);
  EXPECT_EQ(Stat("completed"), 1u);
  EXPECT_EQ(Stat("in_flight"), 0u);
}

TEST_F(MockServerTest, StreamsRoleTokensUsageAndDone) {
  options_.tokens = 2;
  Start();
  const auto answer = Post(
      kChatPath,
      R"({"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"a"}]})",
      {{"x-request-id", "r1"}});
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_THAT(answer->body, StartsWith("data: {\"id\":\"chatcmpl-r1\""));
  EXPECT_THAT(answer->body, HasSubstr(R"("delta":{"role":"assistant","content":""})"));
  EXPECT_THAT(answer->body, HasSubstr(R"("content":"m:0 "},"logprobs":null,"finish_reason":null)"));
  EXPECT_THAT(answer->body,
              HasSubstr(R"("content":"m:1 "},"logprobs":null,"finish_reason":"stop")"));
  EXPECT_THAT(answer->body, HasSubstr(R"("completion_tokens":2)"));
  EXPECT_THAT(answer->body, EndsWith("data: [DONE]\n\n"));
}

TEST_F(MockServerTest, StreamsUnderTheHeadThatVllmSendsAndTellsWhatItReceived) {
  Start();
  Loop loop;
  Resolver resolver;
  const Endpoint endpoint{*Url::Parse(server_->url()), nullptr};
  const std::string request =
      "POST /v1/completions HTTP/1.1\r\nhost: m\r\nx-request-id: r1\r\ntraceparent: 00-ab-cd-01\r\n"
      "content-type: application/json\r\ncontent-length: 28\r\n\r\n"
      R"({"stream":true,"prompt":"a"})";
  const std::string head =
      RunToEnd(loop, [&] { return ReadHead(loop, resolver, endpoint, request); });
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("content-type: text/event-stream; charset=utf-8\r\n"));
  EXPECT_THAT(head, HasSubstr("transfer-encoding: chunked\r\n"));
  EXPECT_THAT(head, HasSubstr("x-mock-request-id: r1\r\n"));
  EXPECT_THAT(head, HasSubstr("x-mock-traceparent: 00-ab-cd-01\r\n"));
}

TEST_F(MockServerTest, TakesTheNameOfItsPortIfItHasNone) {
  options_.name.clear();
  options_.tokens = 1;
  Start(2);
  const auto answer = Post("/v1/completions", R"({"prompt":"x","stream":true})");
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_THAT(answer->body,
              HasSubstr("\"text\":\"mock-" + std::to_string(server_->address().port()) + ":0 \""));
}

TEST_F(MockServerTest, AnswersItsOtherRoutes) {
  options_.models = {"one", "two"};
  Start();
  EXPECT_EQ(Get("/health")->status, 200);
  EXPECT_EQ(Get("/version")->body, R"({"version":"0.32.0"})");
  EXPECT_EQ(Json::Parse(Get("/v1/models")->body)->Find("data")->array()->size(), 2u);
  EXPECT_EQ(Get("/nowhere")->status, 404);
  EXPECT_THAT(Post("/v1/embeddings", R"({"input":"x","model":"two"})")->body,
              HasSubstr("embedding"));
  EXPECT_THAT(Post("/v1/responses", R"({"input":"x","max_output_tokens":1})")->body,
              HasSubstr(R"("text":"m:0 ")"));
  EXPECT_THAT(Post("/v1/audio/speech?x=1", "not json")->body,
              HasSubstr(R"("path":"/v1/audio/speech","bytes":8)"));
}

TEST_F(MockServerTest, RefusesUnknownModelsAndBadJson) {
  Start();
  const auto unknown =
      Post(kChatPath, R"({"model":"gpt-9","messages":[{"role":"user","content":"a"}]})");
  EXPECT_EQ(unknown->status, 404);
  EXPECT_EQ(unknown->body,
            R"({"error":{"message":"The model `gpt-9` does not exist. Valid aliases: mock-model.",)"
            R"("type":"NotFoundError","param":"model","code":404}})");
  EXPECT_EQ(Post(kChatPath, "{")->status, 400);
  EXPECT_EQ(Stat("failed"), 2u);
}

TEST_F(MockServerTest, AsksForItsKey) {
  options_.api_key = "secret";
  options_.tokens = 1;
  Start();
  EXPECT_EQ(Get("/v1/models")->status, 401);
  EXPECT_EQ(Get("/health")->status, 200);
  EXPECT_EQ(Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}]})")->status, 401);
  EXPECT_EQ(Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}]})",
                 {{"authorization", "Bearer wrong"}})
                ->status,
            401);
  EXPECT_EQ(Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}]})",
                 {{"authorization", "Bearer secret"}})
                ->status,
            200);
}

TEST_F(MockServerTest, FailsWhenToldTo) {
  options_.fail_rate = 1;
  Start();
  EXPECT_EQ(Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}]})")->status, 500);
}

TEST_F(MockServerTest, IsBusyWhenToldToButHealthy) {
  options_.busy = true;
  Start();
  const auto answer = Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}]})");
  EXPECT_EQ(answer->status, 503);
  EXPECT_THAT(answer->body, HasSubstr("The engine is currently busy"));
  EXPECT_EQ(Get("/health")->status, 200);
}

TEST_F(MockServerTest, AbortsWithoutTokensWhenDraining) {
  options_.drain_abort = true;
  Start();
  const auto whole =
      Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}],"max_tokens":5})");
  EXPECT_EQ(whole->status, 200);
  EXPECT_THAT(whole->body, HasSubstr(R"("content":""},"logprobs":null,"finish_reason":"abort")"));
  EXPECT_THAT(whole->body, HasSubstr(R"("completion_tokens":0)"));
  const auto stream = Post(
      kChatPath, R"({"messages":[{"role":"user","content":"a"}],"max_tokens":5,"stream":true})");
  EXPECT_THAT(stream->body, HasSubstr(R"("content":""},"logprobs":null,"finish_reason":"abort")"));
  EXPECT_THAT(stream->body, EndsWith("data: [DONE]\n\n"));
}

TEST_F(MockServerTest, DiesInTheMiddleOfAStream) {
  options_.die_after_tokens = 2;
  Start();
  const auto cut = Post(
      kChatPath, R"({"messages":[{"role":"user","content":"a"}],"max_tokens":5,"stream":true})");
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().what, StartsWith("receive"));
  EXPECT_FALSE(Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}],"max_tokens":5})"));
  EXPECT_EQ(Post(kChatPath,
                 R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2,"stream":true})")
                ->status,
            200);
  EXPECT_EQ(Stat("failed"), 2u);
}

TEST_F(MockServerTest, HangsUntilTheClientLeavesAndCountsIt) {
  options_.hang_rate = 1;
  Start();
  EXPECT_FALSE(
      Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}]})", {}, milliseconds(30)));
  Await([&] { return Stat("cancelled") == 1; });
  EXPECT_EQ(Stat("in_flight"), 0u);
}

TEST_F(MockServerTest, StopsGeneratingWhenTheClientLeaves) {
  options_.token_interval = std::chrono::hours(1);
  Start();
  EXPECT_FALSE(Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}],"stream":true})", {},
                    milliseconds(30)));
  Await([&] { return Stat("cancelled") == 1; });
  EXPECT_EQ(Stat("in_flight"), 0u);
}

TEST_F(MockServerTest, StallsWhenTheRequestSaysSo) {
  Start();
  const auto body =
      R"({"messages":[{"role":"user","content":"a"}],"stream":true,"mock_stall_after":2})";
  const auto answer = Post(kChatPath, body, {}, milliseconds(100));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().what, HasSubstr("timed out"));
}

TEST_F(MockServerTest, WritesAnswersOfAnyLength) {
  Start();
  const auto answer = Post(
      kChatPath, R"({"messages":[{"role":"user","content":"a"}],"mock_answer_bytes":1000003})");
  ASSERT_TRUE(answer) << answer.error().what;
  const auto json = Json::Parse(answer->body);
  ASSERT_TRUE(json);
  const Json& choice = json->Find("choices")->array()->front();
  EXPECT_EQ(choice.Find("message")->Find("content")->string()->size(), 1000003u);
}

TEST_F(MockServerTest, StopsWhileStreamsAreOpen) {
  options_.token_interval = std::chrono::hours(1);
  Start(2);
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      EXPECT_FALSE(
          Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}],"stream":true})"));
    });
  }
  Await([&] { return server_->counts().in_flight == 4; });
  server_->Stop();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(server_->counts().cancelled, 4u);
}

TEST_F(MockServerTest, SaysThatItsAddressIsTaken) {
  Start();
  const auto second = MockServer::Start(options_, server_->address(), 1, log_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().what, HasSubstr("in use"));
}

}  // namespace
}  // namespace fathom
