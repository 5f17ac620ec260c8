#include "router/gateway/answer_screen.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

std::string Event(std::string_view json) { return "data: " + std::string(json) + "\n\n"; }

// One chunk of a chat stream, as vLLM writes them.
std::string Chunk(std::string_view delta, std::string_view finish = "null") {
  return Event(R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",)"
               R"("choices":[{"index":0,"delta":)" +
               std::string(delta) + R"(,"logprobs":null,"finish_reason":)" + std::string(finish) +
               "}]}");
}

const std::string kRoleChunk = Chunk(R"({"role":"assistant","content":""})");

TEST(ScreenEvents, WaitsForTheEventAfterTheRole) {
  EXPECT_EQ(ScreenEvents(kRoleChunk), Screening::kWait);
  EXPECT_EQ(ScreenEvents(kRoleChunk + Chunk(R"({"content":"Hi"})")), Screening::kPass);
}

TEST(ScreenEvents, SeesTheAbortOfADrainingWorker) {
  EXPECT_EQ(ScreenEvents(kRoleChunk + Chunk(R"({"content":""})", R"("abort")")),
            Screening::kEmptyAbort);
  EXPECT_EQ(ScreenEvents(kRoleChunk + Chunk("{}", R"("abort")") + Event("[DONE]")),
            Screening::kEmptyAbort);
  EXPECT_EQ(ScreenEvents(Chunk(R"({"role":"assistant","content":null})", R"("abort")")),
            Screening::kEmptyAbort);
  EXPECT_EQ(ScreenEvents(Event(R"({"choices":[{"index":0,"text":"","finish_reason":"abort"}]})")),
            Screening::kEmptyAbort);
}

TEST(ScreenEvents, PassesAnAbortAfterTheFirstToken) {
  EXPECT_EQ(ScreenEvents(kRoleChunk + Chunk(R"({"content":"Hi"})") + Chunk("{}", R"("abort")")),
            Screening::kPass);
  EXPECT_EQ(ScreenEvents(Chunk(R"({"role":"assistant","content":"Hi"})", R"("abort")")),
            Screening::kPass);
}

TEST(ScreenEvents, PassesEverythingThatIsAnAnswer) {
  for (const char* delta :
       {R"({"role":"assistant","reasoning_content":"hm"})", R"({"role":"x","reasoning":"hm"})",
        R"({"role":"assistant","tool_calls":[{"index":0,"function":{"name":"f"}}]})",
        R"({"role":"assistant","content":null,"function_call":{"name":"f","arguments":""}})",
        R"({"role":"assistant","refusal":"I will not"})",
        R"({"role":"assistant","audio":{"id":"a1"}})"}) {
    EXPECT_EQ(ScreenEvents(Chunk(delta)), Screening::kPass) << delta;
  }
  EXPECT_EQ(ScreenEvents(kRoleChunk + Chunk("{}", R"("stop")")), Screening::kPass);
  EXPECT_EQ(ScreenEvents(kRoleChunk + Chunk("{}", R"("length")")), Screening::kPass);
}

TEST(ScreenEvents, PassesWhatItDoesNotUnderstand) {
  for (const std::string& events :
       {std::string(), std::string(": ping\n\n"), Event("[DONE]"), Event("\"abort\""),
        Event(R"({"role":"abort")"), Event(R"({"error":{"message":"\"abort\" \"role\""}})"),
        Event(R"({"choices":[],"role":1})"), Event(R"({"choices":7,"x":"abort"})"),
        Event(R"({"choices":[{"finish_reason":7,"role":1}]})")}) {
    EXPECT_EQ(ScreenEvents(events), Screening::kPass) << events;
  }
}

TEST(ScreenEvents, WantsEveryChoiceToBeEmptyBeforeItCallsAnAnswerAborted) {
  EXPECT_EQ(ScreenEvents(Event(R"({"choices":[{"text":"","finish_reason":"abort"},)"
                               R"({"text":"x","finish_reason":null}]})")),
            Screening::kPass);
  EXPECT_EQ(ScreenEvents(Event(R"({"choices":[{"text":"","finish_reason":"abort"},)"
                               R"({"text":"","finish_reason":"stop"}]})")),
            Screening::kPass);
}

TEST(ScreenJson, SeesAnAbortWithNothingInIt) {
  EXPECT_EQ(ScreenJson(R"({"choices":[{"index":0,"message":{"role":"assistant","content":""},)"
                       R"("finish_reason":"abort"}]})"),
            Screening::kEmptyAbort);
  EXPECT_EQ(ScreenJson(R"({"choices":[{"message":{"content":null,"tool_calls":[]},)"
                       R"("finish_reason":"abort"}]})"),
            Screening::kEmptyAbort);
  EXPECT_EQ(ScreenJson(R"({"choices":[{"index":0,"text":"","finish_reason":"abort"}]})"),
            Screening::kEmptyAbort);
}

TEST(ScreenJson, PassesEverythingElseAndNeverWaits) {
  for (const char* body :
       {"", "null", "\"abort\"", R"({"choices":[{"text":"some","finish_reason":"abort"}]})",
        R"({"choices":[{"message":{"content":"x"},"finish_reason":"abort"}]})",
        R"({"choices":[{"message":{"tool_calls":[{"id":"1"}]},"finish_reason":"abort"}]})",
        R"({"choices":[{"message":{"content":"\"abort\""},"finish_reason":"stop"}]})",
        R"({"choices":[{"text":"","stop":"abort"}]})",
        R"({"choices":[{"text":"","finish_reason":"abort"})",
        R"({"object":"embedding","note":"abort"})"}) {
    EXPECT_EQ(ScreenJson(body), Screening::kPass) << body;
  }
}

TEST(ScreenAgentEvents, WaitsForTheEventAfterTheAnnouncement) {
  const std::string start = Event(R"({"type":"message_start","message":{"usage":{}}})");
  const std::string ping = Event(R"({"type":"ping"})");
  const std::string created = Event(R"({"response":{"id":"r"},"type":"response.created"})");
  const std::string running = Event(R"({"type":"response.in_progress"})");
  for (const std::string& announced : {start, start + ping, created, created + running}) {
    EXPECT_EQ(ScreenAgentEvents(announced), Screening::kWait);
    EXPECT_EQ(ScreenAgentEvents(": comment\n\n" + announced), Screening::kWait);
    EXPECT_EQ(ScreenAgentEvents(announced + Event(R"({"type":"content_block_start"})")),
              Screening::kPass);
  }
  EXPECT_EQ(ScreenAgentEvents(Event(R"({"type":"error","error":{}})")), Screening::kPass);
}

// Its client needs the id, to ask for it later.
TEST(ScreenAgentEvents, PassesAResponseInTheBackground) {
  EXPECT_EQ(
      ScreenAgentEvents(Event(R"({"type":"response.created","response":{"background":true}})")),
      Screening::kPass);
}

}  // namespace
}  // namespace fathom
