// Answers that an engine ends early: what the client gets, in every shape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "testing/becomes.h"
#include "testing/exchange_rig.h"

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Shape {
  std::string path;
  std::string whole;  // ended early
  std::string first;  // events: a part of the text,
  std::string abort;  // and the early end
  std::string error;  // a part of the router's error
};

const Shape kChatShape{
    "/v1/chat/completions",
    R"({"choices":[{"message":{"content":"half an"},"finish_reason":"abort"}],"usage":{}})",
    "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"abort\"}]}\n\ndata: [DONE]\n\n",
    R"("code":"answer_aborted")"};
const Shape kTextShape{
    "/v1/completions",
    R"({"choices":[{"text":"half an","finish_reason":{"type":"abort","message":"stop"}}]})",
    "data: {\"choices\":[{\"text\":\"half\",\"finish_reason\":null}]}\n\n",
    "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"abort\"}]}\n\ndata: [DONE]\n\n",
    R"("code":"answer_aborted")"};
const Shape kMessagesShape{
    "/v1/messages",
    R"({"type":"message","content":[{"type":"text","text":"half an"}],"stop_reason":null})",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":"
    "{\"type\":\"text_delta\",\"text\":\"half\"}}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null}}\n\n"
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    R"({"type":"error","error":{"type":"overloaded_error","message":)"};
const Shape kResponsesShape{
    "/v1/responses", R"({"object":"response","status":"cancelled","output":[],"background":false})",
    "event: response.output_text.delta\ndata: "
    "{\"type\":\"response.output_text.delta\",\"delta\":\"half\"}\n\n",
    "event: response.completed\ndata: "
    "{\"type\":\"response.completed\",\"response\":{\"status\":\"cancelled\"}}\n\n",
    R"("code":"answer_aborted")"};
const Shape* const kShapes[] = {&kChatShape, &kTextShape, &kMessagesShape, &kResponsesShape};

std::string Whole(std::string_view body) {
  return fmt::format(
      "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
      body.size(), body);
}

class EarlyEndExchange : public ExchangeRig, public testing::WithParamInterface<const Shape*> {
 protected:
  static const Shape& shape() { return *GetParam(); }

  void AddWorkerThatAnswers(std::string body) {
    AddWorker(
        [wire = Whole(body)](RawSocket& socket, const std::string&) { return socket.Send(wire); });
  }
  // The text first, and the early end when the client has that.
  void AddWorkerThatStreams(std::string first, std::string then) {
    AddWorker([=, this](RawSocket& socket, const std::string&) {
      socket.Send(std::string(kStreamHead) + Chunked(first));
      EXPECT_TRUE(Becomes([&] { return seen_.load(); }));
      return socket.Send(then + std::string(kLastChunkText));
    });
  }
  // Both parts, as the client gets them.
  std::string ReadStream() {
    RawSocket client = Client();
    client.Send(RequestTo(shape().path, "1.1", "connection: close\r\n"));
    std::string answer = client.ReadUntil(shape().first);
    seen_ = true;
    answer += client.ReadToEnd();
    EXPECT_FALSE(client.reset());
    return answer;
  }

  std::atomic<bool> seen_{false};
};

TEST_P(EarlyEndExchange, OfAnAnswerThatIsNotStreamedIsRetried) {
  AddWorkerThatAnswers(shape().whole);
  AddGoodWorker();
  for (int i = 0; i < 2; ++i) EXPECT_THAT(AskFor(shape().path), EndsWith("\r\n\r\ngood"));
  EXPECT_EQ(context_->metrics.Retries(RetryReason::kAborted).Value(), 1u)
      << "afterwards the worker gets no requests for a while";
}

TEST_P(EarlyEndExchange, IsAnErrorWhereNoOtherWorkerIsLeft) {
  AddWorkerThatAnswers(shape().whole);
  EXPECT_THAT(AskFor(shape().path), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr(shape().error),
                                          Not(HasSubstr("half an"))));
}

TEST_P(EarlyEndExchange, OfAStreamEndsWithAnErrorEvent) {
  AddWorkerThatStreams(shape().first, Chunked(shape().abort));
  const std::string answer = ReadStream();
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr(shape().error),
                            EndsWith("\n\n\r\n0\r\n\r\n")));
  EXPECT_THAT(answer, Not(HasSubstr("[DONE]")));
  EXPECT_THAT(answer, Not(HasSubstr("message_stop")));
}

TEST_P(EarlyEndExchange, OfAStreamThatTheClientHasNothingOfIsRetried) {
  AddWorker([](RawSocket& socket, const std::string&) {
    return socket.Send(std::string(kStreamHead) + Chunked(shape().first + shape().abort) +
                       std::string(kLastChunkText));
  });
  AddGoodWorker();
  for (int i = 0; i < 2; ++i) EXPECT_THAT(AskFor(shape().path), EndsWith("\r\n\r\ngood"));
}

TEST_P(EarlyEndExchange, IsFoundHoweverTheStreamIsCut) {
  std::string then;
  for (const char c : shape().abort) then += Chunked({&c, 1});
  AddWorkerThatStreams(shape().first, then);
  const std::string answer = ReadStream();
  EXPECT_THAT(answer, HasSubstr(shape().error));
  EXPECT_THAT(answer, Not(HasSubstr("[DONE]")));
  EXPECT_THAT(answer, Not(HasSubstr("message_stop")));
}

INSTANTIATE_TEST_SUITE_P(EveryShape, EarlyEndExchange, testing::ValuesIn(kShapes));

class HeldAnswer : public ExchangeRig {
 protected:
  static std::string Completion(size_t bytes, std::string_view reason) {
    return fmt::format(R"({{"choices":[{{"text":"{}","finish_reason":"{}"}}]}})",
                       std::string(bytes, 'x'), reason);
  }
  void AddWorkerThatAnswers(size_t bytes, std::string_view reason) {
    AddWorkerThatSends(Whole(Completion(bytes, reason)));
  }
};

TEST_F(HeldAnswer, IsPassedOnUnchanged) {
  options_.retry_answer_bytes = 100'000;
  AddWorkerThatAnswers(90'000, "length");
  EXPECT_THAT(Ask(), EndsWith("\r\n\r\n" + Completion(90'000, "length")));
}

TEST_F(HeldAnswer, OfUnknownLengthIsHeldToo) {
  const std::string body = Completion(5'000, "abort");
  AddWorkerThatSends("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" +
                     Chunked(body.substr(0, 4'900)) + Chunked(body.substr(4'900)) +
                     std::string(kLastChunkText));
  EXPECT_THAT(Ask(), StartsWith("HTTP/1.1 503 "));
}

// The client has a part of it already, and must not take it for whole.
TEST_F(HeldAnswer, ThatIsLongerIsResetWhenTheEngineEndsItEarly) {
  options_.retry_answer_bytes = 10'000;
  AddWorkerThatAnswers(90'000, "abort");
  RawSocket client = Client();
  client.Send(Request());
  EXPECT_THAT(client.ReadToEnd(), Not(HasSubstr("abort")));
  EXPECT_TRUE(client.reset());
}

TEST_F(HeldAnswer, ThatIsLongerIsPassedOnUnchanged) {
  options_.retry_answer_bytes = 10'000;
  AddWorkerThatAnswers(90'000, "stop");
  EXPECT_THAT(Ask(), EndsWith("\r\n\r\n" + Completion(90'000, "stop")));
}

TEST_F(HeldAnswer, IsPassedOnAsItIsWhereHoldingIsOff) {
  options_.retry_answer_bytes = 0;
  AddWorkerThatAnswers(90'000, "abort");
  EXPECT_THAT(Ask(), EndsWith("\r\n\r\n" + Completion(90'000, "abort")));
}

TEST_F(HeldAnswer, ThatIsCutOffIsRetried) {
  const std::string wire = Whole(Completion(5'000, "stop"));
  AddWorkerThatSends(wire.substr(0, 3'000));
  AddGoodWorker();
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Ask(), EndsWith("\r\n\r\ngood"));
}

// What one answer has taken is returned, however it ends.
TEST_F(HeldAnswer, LeavesNoMemoryTaken) {
  AddWorkerThatAnswers(5'000, "stop");
  Ask();
  Ask();
  EXPECT_EQ(context_->held_answers.used(), 0u);
}

// The client leaves while its answer is held: no other worker is asked.
TEST_F(HeldAnswer, OfAClientThatHasLeftIsNotRetried) {
  std::atomic<int> asked{0};
  for (int i = 0; i < 2; ++i) {
    AddWorker([&](RawSocket& socket, const std::string&) {
      ++asked;
      socket.Send(Whole(Completion(5'000, "abort")).substr(0, 4'000));
      socket.ReadToEnd();  // until the router closes
      return false;
    });
  }
  {
    RawSocket client = Client();
    client.Send(Request());
    EXPECT_TRUE(Becomes([&] { return asked == 1; }));
  }
  EXPECT_TRUE(Becomes([&] { return context_->metrics.client_left.Value() == 1; }));
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace fathom
