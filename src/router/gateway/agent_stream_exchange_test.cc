// Streams of /v1/messages and /v1/responses: what the client gets, wherever they are split or cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "testing/becomes.h"
#include "testing/exchange_rig.h"

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct AgentStream {
  std::string path;
  std::string announcement;  // the events before any of the answer
  std::string text;          // the events after it,
  std::string closing;       // and the last
  std::string error;         // the event that the router ends a broken stream with, a part
  std::string refusal;       // its error before the first byte, a part

  std::string whole() const { return announcement + text + closing; }
};

std::string EventOf(std::string_view name, std::string_view data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

const AgentStream kMessagesStream{
    "/v1/messages",
    EventOf("message_start",
            R"({"type":"message_start","message":{"type":"message","stop_reason":null,)"
            R"("usage":{"input_tokens":9,"output_tokens":0}}})") +
        EventOf("ping", R"({"type":"ping"})"),
    EventOf("content_block_delta",
            R"({"type":"content_block_delta","delta":{"text":"\"message_stop\" \n\n"}})") +
        EventOf("message_delta", R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},)"
                                 R"("usage":{"output_tokens":3}})"),
    EventOf("message_stop", R"({"type":"message_stop"})"),
    "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":",
    R"({"type":"error","error":{"type":"api_error","message":)"};

// vLLM writes the type of an event after its response.
const AgentStream kResponsesStream{
    "/v1/responses",
    EventOf("response.created",
            R"({"response":{"id":"r","status":"in_progress","usage":null},"sequence_number":0,)"
            R"("type":"response.created"})"),
    EventOf("response.output_text.delta", R"({"delta":"response.completed","sequence_number":7,)"
                                          R"("type":"response.output_text.delta"})"),
    EventOf("response.completed",
            R"({"response":{"id":"r","status":"completed","usage":{"input_tokens":9,)"
            R"("input_tokens_details":{"cached_tokens":8}}},"sequence_number":8,)"
            R"("type":"response.completed"})"),
    "event: error\ndata: {\"type\":\"error\",\"sequence_number\":8,\"code\":\"worker_failed\",",
    R"({"error":{"message":)"};

const AgentStream* const kAgentStreams[] = {&kMessagesStream, &kResponsesStream};

constexpr std::string_view kOpenHead =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

class AgentStreamExchange : public ExchangeRig,
                            public testing::WithParamInterface<const AgentStream*> {
 protected:
  // The worker is asked however often it fails.
  AgentStreamExchange() : ExchangeRig(BreakerOptions{.failures = 1'000'000}) {}

  static const AgentStream& stream() { return *GetParam(); }

  // Each request is answered by what `wire` has by then.
  void AddWorkerOfWire() {
    AddWorker([this](RawSocket& socket, const std::string&) {
      for (const std::string& part : wire_.Get()) socket.Send(part);
      return false;
    });
  }

  struct Got {
    std::string head;
    std::string body;
    bool reset = false;
  };
  Got Ask() {
    RawSocket client = Client();
    client.Send(RequestTo(stream().path, "1.1", "connection: close\r\n"));
    Got got;
    got.head = client.ReadUntil("\r\n\r\n");
    if (got.head.contains("transfer-encoding: chunked")) {
      for (const std::string& chunk : ReadChunks(client)) got.body += chunk;
    } else {
      got.body = client.ReadToEnd();
    }
    got.reset = client.reset();
    return got;
  }

  // An error of the router, after whole events of the stream or in place of them.
  void ExpectBroken(const Got& got, size_t cut) {
    if (got.head.starts_with("HTTP/1.1 502 ")) {
      EXPECT_THAT(got.body, HasSubstr(stream().refusal)) << cut;
      return;
    }
    EXPECT_THAT(got.head, StartsWith("HTTP/1.1 200 ")) << cut;
    const size_t error = got.body.find("event: error\n");
    ASSERT_NE(error, std::string::npos) << cut << got.body;
    const std::string before = got.body.substr(0, error);
    EXPECT_TRUE(stream().whole().starts_with(before) && before.ends_with("\n\n")) << cut << before;
    EXPECT_LE(before.size(), cut);
    EXPECT_LE(before.size(), stream().whole().size() - stream().closing.size()) << cut;
    EXPECT_THAT(got.body, HasSubstr(stream().error)) << cut;
    EXPECT_THAT(got.body, EndsWith("}\n\n")) << cut;
  }

  // The parts of an answer. Workers read them on threads of their own.
  class Wire {
   public:
    Wire& operator=(std::vector<std::string> parts) {
      const std::lock_guard lock(mutex_);
      parts_ = std::move(parts);
      return *this;
    }
    std::vector<std::string> Get() const {
      const std::lock_guard lock(mutex_);
      return parts_;
    }

   private:
    mutable std::mutex mutex_;
    std::vector<std::string> parts_;  // guarded by mutex_
  };
  Wire wire_;
};

TEST_P(AgentStreamExchange, IsTheSameWhereverItIsSplit) {
  AddWorkerOfWire();
  const std::string whole = stream().whole();
  for (size_t at = 0; at <= whole.size(); ++at) {
    const std::string a = whole.substr(0, at);
    const std::string b = whole.substr(at);
    wire_ = {std::string(kOpenHead) + a, b};
    EXPECT_EQ(Ask().body, whole) << at;
    wire_ = {std::string(kStreamHead) + (a.empty() ? "" : Chunked(a)),
             (b.empty() ? "" : Chunked(b)) + std::string(kLastChunkText)};
    EXPECT_EQ(Ask().body, whole) << at;
  }
  EXPECT_EQ(context_->metrics.broken_answers.Value(), 0u);
}

TEST_P(AgentStreamExchange, IsTheSameIfEveryByteComesAlone) {
  AddWorkerOfWire();
  std::vector<std::string> parts = {std::string(kStreamHead)};
  for (const char c : stream().whole()) parts.push_back(Chunked({&c, 1}));
  parts.emplace_back(kLastChunkText);
  wire_ = std::move(parts);
  EXPECT_EQ(Ask().body, stream().whole());
}

// The connection ends, as it does when the engine has crashed.
TEST_P(AgentStreamExchange, ThatIsCutEndsWithAnErrorWhereTheConnectionIsTheFrame) {
  AddWorkerOfWire();
  const std::string whole = stream().whole();
  // The last event is whole with its line, and needs no blank one.
  for (size_t cut = 0; cut < whole.size() - 1; ++cut) {
    wire_ = {std::string(kOpenHead), whole.substr(0, cut)};
    ExpectBroken(Ask(), cut);
  }
  for (const size_t cut : {whole.size() - 1, whole.size()}) {
    wire_ = {std::string(kOpenHead), whole.substr(0, cut)};
    EXPECT_EQ(Ask().body, whole.substr(0, cut));
  }
}

TEST_P(AgentStreamExchange, ThatIsCutEndsWithAnErrorWhereChunksEndRegularly) {
  AddWorkerOfWire();
  const std::string whole = stream().whole();
  for (size_t cut = 1; cut < whole.size() - 1; ++cut) {
    wire_ = {std::string(kStreamHead) + Chunked(whole.substr(0, cut)), std::string(kLastChunkText)};
    ExpectBroken(Ask(), cut);
  }
}

TEST_P(AgentStreamExchange, ThatIsCutEndsWithAnErrorWhereTheChunksAreTornToo) {
  AddWorkerOfWire();
  const std::string whole = stream().whole();
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    wire_ = {std::string(kStreamHead) + fmt::format("{:x}\r\n", whole.size()) +
             whole.substr(0, cut)};
    ExpectBroken(Ask(), cut);
  }
}

// The client knows the length; nothing can be added.
TEST_P(AgentStreamExchange, OfKnownLengthThatLacksItsEndIsReset) {
  AddWorkerOfWire();
  const std::string part = stream().announcement + stream().text;
  wire_ = {fmt::format("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                       "content-length: {}\r\n\r\n",
                       part.size()) +
               part.substr(0, part.size() - 5),
           part.substr(part.size() - 5)};
  const Got got = Ask();
  if (got.head.starts_with("HTTP/1.1 502 ")) return;  // all of it came at once
  EXPECT_LT(got.body.size(), part.size());
  EXPECT_TRUE(got.reset);
}

// The announcement of an answer is not yet an answer.
TEST_P(AgentStreamExchange, ThatIsCutAfterItsAnnouncementIsRetried) {
  wire_ = {std::string(kStreamHead) + Chunked(stream().announcement)};
  AddWorkerOfWire();
  AddGoodWorker();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Ask().body, "good");
  EXPECT_GE(context_->metrics.Retries(RetryReason::kBroken).Value(), 1u);
}

TEST_P(AgentStreamExchange, ThatIsCutIsCountedAsBroken) {
  std::atomic<bool> seen{false};
  AddWorker([&](RawSocket& socket, const std::string&) {
    socket.Send(std::string(kStreamHead) + Chunked(stream().announcement + stream().text));
    EXPECT_TRUE(Becomes([&] { return seen.load(); }));
    socket.Send(kLastChunkText);
    return false;
  });
  RawSocket client = Client();
  client.Send(RequestTo(stream().path, "1.1", "connection: close\r\n"));
  client.ReadUntil(stream().text);
  seen = true;
  EXPECT_THAT(client.ReadToEnd(), AllOf(HasSubstr(stream().error), EndsWith("0\r\n\r\n")));
  EXPECT_EQ(context_->metrics.broken_answers.Value(), 1u);
}

// The last event of a response has all of the answer, the instructions and the tools.
TEST_P(AgentStreamExchange, WithAnEventOfAMegabyteIsNotTakenForCut) {
  const std::string large = EventOf(
      "x", fmt::format(R"({{"type":"x","response":{{"text":"{}"}}}})", std::string(1 << 20, 'x')));
  const std::string whole = stream().announcement + stream().text + large + stream().closing;
  wire_ = {std::string(kOpenHead) + whole};
  AddWorkerOfWire();
  EXPECT_EQ(Ask().body, whole);
}

// An event that is too long to be held is sent in parts, and nothing can be said about the end.
TEST_P(AgentStreamExchange, WithAnEventThatIsTooLongToReadPassesAsItIs) {
  const std::string whole = stream().announcement + stream().text + "data: {\"x\":\"" +
                            std::string(5 << 20, 'x') + "\"}\n\n";
  wire_ = {std::string(kOpenHead) + whole};
  AddWorkerOfWire();
  EXPECT_EQ(Ask().body, whole);
}

TEST_P(AgentStreamExchange, ThatIsTornInAnEventThatWasSentInPartsHasItsErrorApart) {
  wire_ = {std::string(kStreamHead) + "fffffff\r\n" + stream().announcement + stream().text +
           "data: {\"x\":\"" + std::string(5 << 20, 'x')};
  AddWorkerOfWire();
  EXPECT_THAT(Ask().body, HasSubstr("x\n\nevent: error\n"));
}

// The engine's own error is passed on as it is, and nothing is added.
TEST_P(AgentStreamExchange, ThatTheEngineEndsWithAnErrorIsNotCut) {
  const std::string whole =
      stream().announcement + stream().text +
      EventOf("error", R"({"type":"error","error":{"type":"internal_error","message":"x"}})");
  wire_ = {std::string(kOpenHead) + whole};
  AddWorkerOfWire();
  EXPECT_EQ(Ask().body, whole);
}

INSTANTIATE_TEST_SUITE_P(EveryApi, AgentStreamExchange, testing::ValuesIn(kAgentStreams));

}  // namespace
}  // namespace fathom
