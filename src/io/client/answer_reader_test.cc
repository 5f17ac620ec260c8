#include "io/client/answer_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "testing/loopback_server.h"

namespace fathom {
namespace {

// Answers with these bytes, a few at a time, and closes.
class Bytes final : public HttpHandler {
 public:
  Bytes(Loop& loop, std::string_view text, size_t step) : loop_(loop), text_(text), step_(step) {}

  Task<void> Handle(ServerConnection& connection) override {
    connection.MarkAnswered();
    connection.CloseAfterwards();
    for (size_t at = 0; at < text_.size(); at += step_) {
      const std::string_view part = text_.substr(at, step_);
      const IoResult sent = co_await connection.socket().Write(part, connection.WriteDeadline());
      if (!sent.ok()) co_return;
      co_await loop_.Sleep(std::chrono::milliseconds(1));
    }
  }
  Answer Refuse(const RequestProblem& problem) override { return {.status = problem.status}; }

 private:
  Loop& loop_;
  const std::string_view text_;
  const size_t step_;
};

struct Received {
  int status = 0;
  std::string body;
  Result<void> result;
};

Task<Received> Receive(Loop& loop, const Address& address) {
  Received out;
  const TimePoint deadline = loop.now() + std::chrono::seconds(20);
  Resolver resolver;
  ClientConnection connection(loop);
  const Endpoint endpoint{*Url::Parse("http://" + address.ToString()), nullptr};
  auto opening = connection.Open(endpoint, resolver, deadline);
  out.result = co_await opening;
  if (!out.result) co_return out;
  auto sending = SendRequest(connection, "GET / HTTP/1.1\r\nhost: x\r\n\r\n", deadline);
  out.result = co_await sending;
  AnswerReader answer(connection, deadline);
  while (out.result && !answer.over()) {
    auto reading = answer.Read();
    out.result = co_await reading;
    if (!out.result) break;
    out.status = answer.head().status;
    for (const std::string_view piece : answer.pieces()) out.body += piece;
  }
  co_return out;
}

Received Ask(std::string_view text, size_t step) {
  LoopThread thread;
  Bytes bytes(thread.loop(), text, step);
  LoopbackServer server(thread, bytes);
  return thread.Complete([&] { return Receive(thread.loop(), server.address()); });
}

TEST(AnswerReader, ReadsEveryFramingHoweverItIsCut) {
  for (const std::string_view text : {"HTTP/1.1 201 Created\r\ncontent-length: 5\r\n\r\nhello",
                                      "HTTP/1.1 201 Created\r\ntransfer-encoding: "
                                      "chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
                                      "HTTP/1.1 201 Created\r\n\r\nhello"}) {
    for (const size_t step : {size_t{1}, size_t{30}, text.size()}) {
      const Received received = Ask(text, step);
      EXPECT_TRUE(received.result) << text << received.result.error().what;
      EXPECT_EQ(received.status, 201) << text;
      EXPECT_EQ(received.body, "hello") << text;
    }
  }
}

TEST(AnswerReader, NeedsNoBodyToBeOver) {
  const Received received = Ask("HTTP/1.1 204 No Content\r\n\r\n", 100);
  EXPECT_TRUE(received.result);
  EXPECT_EQ(received.status, 204);
  EXPECT_EQ(received.body, "");
}

TEST(AnswerReader, FailsWhenTheAnswerBreaksOffOrIsNoHttp) {
  for (const std::string_view text :
       {"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello", "HTTP/1.1 200 OK\r\nconte",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "hello\r\n\r\n"}) {
    const Received received = Ask(text, text.size());
    EXPECT_FALSE(received.result) << text;
  }
}

TEST(AnswerUsage, IsWhatTheAnswerSaysAndZeroWhereItIsSilent) {
  const AnswerUsage usage =
      UsageOf(*Json::Parse(R"({"usage":{"prompt_tokens":9,"completion_tokens":4,)"
                           R"("prompt_tokens_details":{"cached_tokens":8}}})"));
  EXPECT_EQ(usage.prompt_tokens, 9u);
  EXPECT_EQ(usage.completion_tokens, 4u);
  EXPECT_EQ(usage.cached_tokens, 8u);
  for (const std::string_view silent :
       {"{}", R"({"usage":null})", R"({"usage":{"prompt_tokens_details":null}})", "[]",
        R"({"usage":{"prompt_tokens":-1,"prompt_tokens_details":{"cached_tokens":"x"}}})"}) {
    const AnswerUsage none = UsageOf(*Json::Parse(silent));
    EXPECT_EQ(none.prompt_tokens + none.cached_tokens + none.completion_tokens, 0u) << silent;
  }
}

}  // namespace
}  // namespace fathom
