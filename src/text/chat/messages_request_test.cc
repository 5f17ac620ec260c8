#include "text/chat/messages_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "text/chat/json_pieces.h"

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr EngineHabits kThinks = {.thoughts = ThoughtMarks{"<think>", "</think>"},
                                  .thinking_argument = "enable_thinking"};

std::string Written(const Json& json) {
  std::string out;
  json.WriteTo(out);
  return out;
}

struct Asked {
  std::string_view messages;
  std::string_view system = {};
  std::string_view tools = {};
  std::string_view thinking = {};
  std::string_view output_config = {};
};

Result<ChatSource> Read(const Asked& asked, ChatDialect dialect,
                        const EngineHabits& habits = kThinks) {
  return ReadMessages({.api = PromptApi::kMessages,
                       .messages = asked.messages,
                       .tools = asked.tools,
                       .system = asked.system,
                       .thinking = asked.thinking,
                       .output_config = asked.output_config},
                      dialect, habits);
}

// The messages that the engine makes of it, or why it makes none.
std::string MessagesOf(const Asked& asked, ChatDialect dialect,
                       const EngineHabits& habits = kThinks) {
  const auto source = Read(asked, dialect, habits);
  return source ? Written(ListJson(source->messages)) : source.error().what;
}

std::string ToolsOf(const Asked& asked, ChatDialect dialect) {
  const auto source = Read(asked, dialect);
  if (!source) return source.error().what;
  return source->tools ? Written(ListJson(*source->tools)) : "none";
}

constexpr std::string_view kHi = R"([{"role":"user","content":"hi"}])";

TEST(MessagesRequestTest, PutsTheSystemInFront) {
  const Asked asked{.messages = kHi,
                    .system = R"([{"type":"text","text":"a"},{"type":"text","text":""},
                                  {"type":"text","text":"b"}])"};
  EXPECT_THAT(MessagesOf(asked, ChatDialect::kVllm),
              HasSubstr(R"({"role":"system","content":"ab"})"));
  EXPECT_THAT(MessagesOf(asked, ChatDialect::kSglang), HasSubstr(R"("content":"a\nb")"));
  EXPECT_THAT(MessagesOf(asked, ChatDialect::kTrtllm), HasSubstr(R"("content":"a\n\nb")"));
}

TEST(MessagesRequestTest, DropsTheBillingPartAsEachEngineDoes) {
  const Asked asked{.messages = kHi,
                    .system = R"([{"type":"text","text":"x-anthropic-billing-header: cc=1; v=2;"},
                                  {"type":"text","text":"be brief"}])"};
  EXPECT_THAT(MessagesOf(asked, ChatDialect::kVllm), Not(HasSubstr("billing")));
  EXPECT_THAT(MessagesOf(asked, ChatDialect::kSglang), HasSubstr("billing"));
  EXPECT_THAT(MessagesOf(asked, ChatDialect::kTrtllm), Not(HasSubstr("billing")));
  const Asked more{.messages = kHi,
                   .system = R"([{"type":"text","text":"x-anthropic-billing-header: and words"}])"};
  EXPECT_THAT(MessagesOf(more, ChatDialect::kTrtllm), HasSubstr("and words"));
}

TEST(MessagesRequestTest, MovesLaterWordsOfTheSystemWhereTheTemplateRefusesThem) {
  const Asked asked{.messages = R"([{"role":"user","content":"hi"},
                                    {"role":"system","content":" now "},
                                    {"role":"user","content":"on"}])",
                    .system = R"("first")"};
  const EngineHabits refuses{.takes_inline_system = false};
  EXPECT_THAT(MessagesOf(asked, ChatDialect::kVllm),
              HasSubstr(R"({"role":"system","content":" now "})"));
  EXPECT_THAT(MessagesOf(asked, ChatDialect::kVllm, refuses),
              HasSubstr(R"("content":"first now ")"));
  EXPECT_THAT(MessagesOf(asked, ChatDialect::kSglang, refuses),
              HasSubstr(R"("content":"first\nnow")"));
}

TEST(MessagesRequestTest, TensorRtLlmMovesOnlyTheFirstWordsOfTheSystem) {
  EXPECT_EQ(
      MessagesOf({.messages = R"([{"role":"system","content":"a"},{"role":"user","content":"hi"},
                                        {"role":"system","content":"b"}])"},
                 ChatDialect::kTrtllm),
      R"([{"role":"system","content":"a"},{"role":"user","content":"hi"},)"
      R"({"role":"system","content":"b"}])");
}

constexpr std::string_view kStep = R"([{"role":"assistant","content":[
    {"type":"thinking","thinking":"one","signature":"s"},{"type":"thinking","thinking":"two"},
    {"type":"text","text":"Let me look."},
    {"type":"tool_use","id":"t1","name":"look","input":{"n":1}}]},
  {"role":"user","content":[{"type":"text","text":"before"},
    {"type":"tool_result","tool_use_id":"t1","is_error":true,
     "content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]},
    {"type":"text","text":"after"}]}])";

TEST(MessagesRequestTest, AStepOfAnAgentForVllm) {
  EXPECT_EQ(MessagesOf({.messages = kStep}, ChatDialect::kVllm),
            R"([{"role":"assistant","content":"Let me look.","reasoning":"onetwo","tool_calls":)"
            R"([{"id":"t1","type":"function","function":{"name":"look","arguments":{"n":1}}}]},)"
            R"({"role":"tool","tool_call_id":"t1","content":"x\ny"},)"
            R"({"role":"user","content":[{"type":"text","text":"before"},)"
            R"({"type":"text","text":"after"}]}])");
}

TEST(MessagesRequestTest, AStepOfAnAgentForSglang) {
  const std::string with = MessagesOf({.messages = kStep}, ChatDialect::kSglang);
  EXPECT_THAT(with, HasSubstr(R"({"type":"text","text":"<think>one\ntwo\n</think>"},)"
                              R"({"type":"text","text":"Let me look."})"));
  EXPECT_THAT(with, HasSubstr(R"({"role":"user","content":"before"},{"role":"tool")"));
  EXPECT_THAT(with,
              HasSubstr(R"("content":[{"type":"text","text":"x"},{"type":"text","text":"y"}])"));
  const std::string without = MessagesOf({.messages = kStep}, ChatDialect::kSglang, {});
  EXPECT_THAT(without, HasSubstr(R"("content":"Let me look.")"));
}

TEST(MessagesRequestTest, AStepOfAnAgentForTensorRtLlm) {
  EXPECT_THAT(MessagesOf({.messages = kStep}, ChatDialect::kTrtllm),
              HasSubstr(R"("content":"Tool execution failed: x\ny")"));
}

TEST(MessagesRequestTest, WhatIsNoTextIsAnImage) {
  constexpr std::string_view kShown = R"([{"role":"user","content":[
      {"type":"image","source":{"type":"url","url":"u"}},{"type":"text","text":"?"}]}])";
  EXPECT_THAT(MessagesOf({.messages = kShown}, ChatDialect::kVllm),
              HasSubstr(R"([{"type":"image_url"},{"type":"text","text":"?"}])"));
  // The picture that a tool has made is shown by the user.
  constexpr std::string_view kMade = R"([{"role":"user","content":[{"type":"tool_result",
      "tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"u"}}]}]}])";
  EXPECT_EQ(MessagesOf({.messages = kMade}, ChatDialect::kVllm),
            R"([{"role":"tool","tool_call_id":"t","content":""},)"
            R"({"role":"user","content":[{"type":"image_url"}]}])");
}

TEST(MessagesRequestTest, EmptyMessagesStayWhereTheEngineKeepsThem) {
  constexpr std::string_view kEmpty =
      R"([{"role":"user","content":[]},{"role":"assistant","content":[{"type":"text","text":""}]}])";
  EXPECT_EQ(MessagesOf({.messages = kEmpty}, ChatDialect::kVllm), R"([{"role":"assistant"}])");
  EXPECT_EQ(MessagesOf({.messages = kEmpty}, ChatDialect::kSglang),
            R"([{"role":"assistant","content":""}])");
}

TEST(MessagesRequestTest, HiddenThoughtsAreSkippedOrRefused) {
  constexpr std::string_view kHidden = R"([{"role":"assistant","content":[
      {"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"}]}])";
  EXPECT_EQ(MessagesOf({.messages = kHidden}, ChatDialect::kVllm),
            R"([{"role":"assistant","content":"a"}])");
  EXPECT_THAT(MessagesOf({.messages = kHidden}, ChatDialect::kSglang), HasSubstr("redacted"));
}

TEST(MessagesRequestTest, SglangReadsHugeNumbersAsFloatingPoint) {
  constexpr std::string_view kHuge = R"([{"role":"assistant","content":[{"type":"tool_use","id":"t",
      "name":"f","input":{"n":123456789012345678901234567890}}]}])";
  EXPECT_THAT(MessagesOf({.messages = kHuge}, ChatDialect::kVllm),
              HasSubstr("123456789012345678901234567890"));
  EXPECT_THAT(MessagesOf({.messages = kHuge}, ChatDialect::kSglang),
              Not(HasSubstr("123456789012345678901234567890")));
}

TEST(MessagesRequestTest, ToolsAreFunctions) {
  const Asked asked{.messages = kHi,
                    .tools = R"([{"name":"f","input_schema":{"properties":{}},"cache_control":1},
                                 {"type":"bash_20250124","name":"bash","input_schema":{}}])"};
  EXPECT_THAT(ToolsOf(asked, ChatDialect::kVllm),
              HasSubstr(R"({"type":"function","function":{"name":"f","description":null,)"
                        R"("parameters":{"properties":{},"type":"object"}}})"));
  EXPECT_EQ(ToolsOf(asked, ChatDialect::kSglang),
            R"([{"type":"function","function":{"name":"f","description":"",)"
            R"("parameters":{"properties":{},"type":"object"},"strict":false}}])");
}

TEST(MessagesRequestTest, MessagesOfTheSystemChangeTheToolsOfVllm) {
  const Asked asked{
      .messages = R"([{"role":"user","content":"hi"},{"role":"system","content":[
          {"type":"tool_removal","tool":{"type":"tool_reference","name":"a"}},
          {"type":"tool_addition","tool":{"type":"tool_reference","name":"b"}},
          {"type":"tool_addition","tool":{"type":"tool_definition","definition":
             {"name":"c","input_schema":{"type":"object"}}}}]}])",
      .tools =
          R"([{"name":"a","input_schema":{}},{"name":"b","input_schema":{},"defer_loading":true}])"};
  const std::string tools = ToolsOf(asked, ChatDialect::kVllm);
  EXPECT_THAT(tools, Not(HasSubstr(R"("a")")));
  EXPECT_THAT(tools, Not(HasSubstr("defer_loading")));
  EXPECT_THAT(tools, HasSubstr(R"("name":"c")"));
  EXPECT_THAT(ToolsOf(asked, ChatDialect::kSglang), HasSubstr("block"));
}

TEST(MessagesRequestTest, ThinkingIsTurnedOff) {
  const Asked asked{.messages = kHi, .thinking = R"({"type":"disabled"})"};
  EXPECT_EQ(*Read(asked, ChatDialect::kVllm)->reasoning_effort.string(), "none");
  const EngineHabits deaf{.hears_no_effort = false};
  EXPECT_EQ(*Read(asked, ChatDialect::kVllm, deaf)->reasoning_effort.string(), "low");
  const auto sglang = Read(asked, ChatDialect::kSglang);
  EXPECT_EQ(Written(ObjectJson(sglang->kwargs)), R"({"enable_thinking":false})");
  EXPECT_TRUE(Read(asked, ChatDialect::kSglang, {})->kwargs.empty());
}

TEST(MessagesRequestTest, SglangKnowsNoEffortBeyondTheHighest) {
  const Asked asked{.messages = kHi, .output_config = R"({"effort":"xhigh"})"};
  EXPECT_EQ(*Read(asked, ChatDialect::kVllm)->reasoning_effort.string(), "xhigh");
  EXPECT_EQ(*Read(asked, ChatDialect::kSglang)->reasoning_effort.string(), "max");
}

TEST(MessagesRequestTest, WhatIsNoMessageIsRefused) {
  for (const std::string_view wrong :
       {R"("hi")", R"([1])", R"([{"role":"tool","content":"x"}])", R"([{"role":"user"}])",
        R"([{"role":"user","content":5}])", R"([{"role":"user","content":[{"type":"document"}]}])",
        R"([{"role":"assistant","content":[{"type":"tool_use","input":[]}]}])"}) {
    EXPECT_FALSE(Read({.messages = wrong}, ChatDialect::kVllm)) << wrong;
  }
  EXPECT_FALSE(Read({.messages = kHi, .system = "5"}, ChatDialect::kVllm));
  EXPECT_FALSE(Read({.messages = kHi, .tools = R"([{"name":"f"}])"}, ChatDialect::kVllm));
}

}  // namespace
}  // namespace fathom
