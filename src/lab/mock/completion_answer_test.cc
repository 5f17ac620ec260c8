#include "lab/mock/completion_answer.h"

#include <gtest/gtest.h>

#include "codec/chunked.h"
#include "codec/json.h"
#include "lab/mock/pages.h"

namespace fathom {
namespace {

const AnswerIdentity kChat{.chat = true, .id = "chatcmpl-1", .created = 17, .model = "m"};
const AnswerIdentity kText{.chat = false, .id = "cmpl-1", .created = 17, .model = "m"};

// The payload of the one chunk that a frame is.
std::string Payload(std::string_view frame) {
  ChunkedDecoder decoder;
  std::string out;
  while (!frame.empty()) {
    const auto step = decoder.Feed(frame);
    if (!step || step->consumed == 0) return "broken";
    out += step->payload;
    frame.remove_prefix(step->consumed);
  }
  return out;
}

// The JSON of the one event in a frame.
Json Event(std::string_view frame) {
  const std::string payload = Payload(frame);
  EXPECT_TRUE(payload.starts_with("data: ") && payload.ends_with("}\n\n")) << payload;
  auto json = Json::Parse(payload.substr(6));
  EXPECT_TRUE(json) << payload;
  return json ? *json : Json();
}

const Json& ChoiceOf(const Json& answer) { return answer.Find("choices")->array()->front(); }

TEST(Speaker, NamesItselfInEveryToken) {
  EXPECT_EQ(Speaker("mock-8100", 0).Tokens(3), "mock-8100:0 mock-8100:1 mock-8100:2 ");
}

TEST(Speaker, PadsTokensToTheLengthAskedFor) {
  const Speaker speaker("m", 16);
  std::string token;
  speaker.AppendToken(token, 12);
  EXPECT_EQ(token, "m:12........... ");
  token.clear();
  Speaker("long-name", 4).AppendToken(token, 0);
  EXPECT_EQ(token, "long-name:0 ");
}

TEST(StreamFrames, ChatEventsAreWhatVllmSends) {
  const Speaker speaker("a", 0);
  StreamFrames frames(kChat, speaker);
  EXPECT_EQ(Payload(frames.Role()),
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":17,"
            "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
            "\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n");
  EXPECT_EQ(Payload(frames.Token(10)),
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":17,"
            "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a:10 \"},"
            "\"logprobs\":null,\"finish_reason\":null}]}\n\n");
  EXPECT_EQ(Payload(frames.LastToken(11, "length")),
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":17,"
            "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a:11 \"},"
            "\"logprobs\":null,\"finish_reason\":\"length\",\"stop_reason\":null}]}\n\n");
  EXPECT_EQ(Payload(frames.Done()), "data: [DONE]\n\n");
}

TEST(StreamFrames, TextEventsAndUsageAreJson) {
  const Speaker speaker("quo\"te", 0);
  StreamFrames frames(kText, speaker);
  EXPECT_EQ(*ChoiceOf(Event(frames.Token(0))).Find("text")->string(), "quo\"te:0 ");
  EXPECT_EQ(*ChoiceOf(Event(frames.Nothing("abort"))).Find("finish_reason")->string(), "abort");
  const Json usage = Event(frames.Usage(5, 2));
  EXPECT_TRUE(usage.Find("choices")->array()->empty());
  EXPECT_EQ(usage.Find("usage")->Find("total_tokens")->unsigned_integer(), 7u);
}

TEST(StreamFrames, OnlyTheLastEventEndsTheBody) {
  const Speaker speaker("a", 0);
  StreamFrames frames(kChat, speaker);
  EXPECT_FALSE(frames.Token(0).ends_with(kLastChunk));
  EXPECT_TRUE(frames.Done().ends_with(kLastChunk));
}

TEST(AnswerEnvelope, HoldsATextOfAnyLength) {
  for (const AnswerIdentity& identity : {kChat, kText}) {
    const AnswerEnvelope envelope = MakeEnvelope(identity, "stop", 3, 4);
    const auto json = Json::Parse(envelope.before + "x y" + envelope.after);
    ASSERT_TRUE(json);
    const Json& choice = ChoiceOf(*json);
    const Json* text =
        identity.chat ? choice.Find("message")->Find("content") : choice.Find("text");
    EXPECT_EQ(*text->string(), "x y");
    EXPECT_EQ(*choice.Find("finish_reason")->string(), "stop");
    EXPECT_EQ(json->Find("usage")->Find("prompt_tokens")->unsigned_integer(), 3u);
  }
}

TEST(Pages, EmbeddingsDependOnTheInputAlone) {
  const auto vectors = [](const char* body) {
    const auto request = ParseCompletionRequest(body);
    return EmbeddingsPage(kText, *request);
  };
  EXPECT_EQ(vectors(R"({"input":"a b"})"), vectors(R"({"input":"a b"})"));
  EXPECT_NE(vectors(R"({"input":"a b"})"), vectors(R"({"input":"a c"})"));
  const auto count = [&](const char* body) {
    return Json::Parse(vectors(body))->Find("data")->array()->size();
  };
  EXPECT_EQ(count(R"({"input":"a b"})"), 1u);
  EXPECT_EQ(count(R"({"input":[1,2,3]})"), 1u);
  EXPECT_EQ(count(R"({"input":["a","b"]})"), 2u);
  EXPECT_EQ(count(R"({"input":[[1],[2],[3]]})"), 3u);
}

TEST(Pages, EchoTellsBodiesApart) {
  EXPECT_NE(EchoPage("/v1/x", "abc"), EchoPage("/v1/x", "abd"));
  const auto echo = Json::Parse(EchoPage("/v1/x", "abc"));
  ASSERT_TRUE(echo);
  EXPECT_EQ(*echo->Find("path")->string(), "/v1/x");
  EXPECT_EQ(echo->Find("bytes")->unsigned_integer(), 3u);
  EXPECT_EQ(*echo->Find("xxh3")->string(), "78af5f94892f3950");
}

}  // namespace
}  // namespace fathom
