#include "text/chat/responses_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "text/chat/json_pieces.h"

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::Not;

Result<ChatSource> ReadAs(ChatDialect dialect, ChatFields fields, const EngineHabits& habits = {}) {
  fields.api = PromptApi::kResponses;
  return ReadResponses(fields, dialect, habits);
}

std::string AsText(const Json& json) {
  std::string out;
  json.WriteTo(out);
  return out;
}

std::string Chat(std::string_view input, ChatDialect dialect, const EngineHabits& habits = {}) {
  const auto source = ReadAs(dialect, {.input = input}, habits);
  return source ? AsText(ListJson(source->messages)) : source.error().what;
}

std::string Tools(std::string_view tools, ChatDialect dialect) {
  const auto source = ReadAs(dialect, {.tools = tools, .input = R"("hi")"});
  return source && source->tools ? AsText(ListJson(*source->tools)) : "none";
}

TEST(ResponsesRequestTest, ATextIsTheUsers) {
  const auto source =
      ReadAs(ChatDialect::kVllm, {.input = R"("hi")", .instructions = R"("be brief")"});
  EXPECT_EQ(AsText(ListJson(source->messages)),
            R"([{"role":"system","content":"be brief"},{"role":"user","content":"hi"}])");
}

constexpr std::string_view kTurn = R"([
  {"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"in short"}],
   "content":[{"type":"reasoning_text","text":"at length"}]},
  {"type":"message","role":"assistant","id":"m","status":"completed",
   "content":[{"type":"output_text","text":"Let me look.","annotations":[]}]},
  {"type":"function_call","call_id":"c1","name":"look","arguments":"{\"n\": 1}"},
  {"type":"function_call","call_id":"c2","name":"look","arguments":"{}"},
  {"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"x"},
                                                            {"type":"input_text","text":"y"}]}])";

TEST(ResponsesRequestTest, TheItemsOfATurnAreOneMessage) {
  const std::string vllm = Chat(kTurn, ChatDialect::kVllm);
  EXPECT_THAT(vllm, HasSubstr(R"([{"role":"assistant","reasoning":"at length",)"
                              R"("content":"Let me look.","tool_calls":[{"id":"c1")"));
  const std::string sglang = Chat(kTurn, ChatDialect::kSglang);
  EXPECT_THAT(sglang, HasSubstr(R"("reasoning_content":"in short")"));
  EXPECT_THAT(sglang, HasSubstr(R"({"role":"tool","tool_call_id":"c1","content":"xy"})"));
  const std::string trtllm = Chat(kTurn, ChatDialect::kTrtllm);
  EXPECT_THAT(trtllm, HasSubstr(R"({"role":"assistant","reasoning":"at length"},)"
                                R"({"role":"assistant","content":"Let me look.","tool_calls")"));
  EXPECT_THAT(trtllm, HasSubstr(R"("content":"xy")"));
}

TEST(ResponsesRequestTest, SglangNamesTheDevelopersWords) {
  constexpr std::string_view kDeveloper =
      R"([{"role":"developer","content":[{"type":"input_text","text":"be brief"}]},
          {"role":"user","content":"hi"}])";
  EXPECT_THAT(Chat(kDeveloper, ChatDialect::kSglang),
              HasSubstr(R"({"role":"system","content":[{"type":"text","text":)"
                        R"("Developer instructions:\nbe brief"}]})"));
  EXPECT_THAT(Chat(kDeveloper, ChatDialect::kVllm), HasSubstr(R"("role":"developer")"));
}

TEST(ResponsesRequestTest, SglangMovesTheSystemToTheFront) {
  EXPECT_EQ(Chat(R"([{"role":"user","content":"hi"},{"role":"system","content":"a"},
                     {"role":"system","content":[{"type":"input_text","text":"b"}]}])",
                 ChatDialect::kSglang, {.takes_inline_system = false}),
            R"([{"role":"system","content":"a\n\nb"},{"role":"user","content":"hi"}])");
}

TEST(ResponsesRequestTest, SglangJoinsAnswersInARowUnlessTheirPhasesDiffer) {
  EXPECT_THAT(Chat(R"([{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}])",
                   ChatDialect::kSglang),
              HasSubstr(R"("content":"a\n\nb")"));
  EXPECT_THAT(Chat(R"([{"role":"assistant","content":"a","phase":"commentary"},
                       {"role":"assistant","content":"b","phase":"final_answer"}])",
                   ChatDialect::kSglang),
              Not(HasSubstr("a\\n\\nb")));
}

// In time that grows with their number, not with its square: a request must not hold up a loop.
TEST(ResponsesRequestTest, ATurnMayHaveVeryManyItems) {
  std::string calls = "[";
  std::string texts = "[";
  for (int i = 0; i < 4'000; ++i) {
    calls += R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}"},)";
    texts += R"({"role":"assistant","content":[{"type":"output_text","text":"a"}]},)";
  }
  calls.back() = texts.back() = ']';
  for (const ChatDialect dialect :
       {ChatDialect::kVllm, ChatDialect::kSglang, ChatDialect::kTrtllm}) {
    const auto source = ReadAs(dialect, {.input = calls});
    ASSERT_EQ(source->messages.size(), 1u);
    EXPECT_EQ(ListIn(source->messages[0], "tool_calls")->size(), 4'000u);
  }
  const auto merged = ReadAs(ChatDialect::kSglang, {.input = texts});
  EXPECT_EQ(ListIn(merged->messages[0], "content")->size(), 4'000u);
}

TEST(ResponsesRequestTest, ArgumentsThatAreNoObjectAreEmptyForSglang) {
  EXPECT_THAT(Chat(R"([{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":"}])",
                   ChatDialect::kSglang),
              HasSubstr(R"("arguments":{})"));
}

TEST(ResponsesRequestTest, OnlyVllmContinuesAnAnswer) {
  constexpr std::string_view kBegun = R"([{"role":"user","content":"hi"},{"type":"message",
      "role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"We"}]}])";
  EXPECT_TRUE(ReadAs(ChatDialect::kVllm, {.input = kBegun})->continue_final_message);
  EXPECT_FALSE(ReadAs(ChatDialect::kSglang, {.input = kBegun})->continue_final_message);
}

TEST(ResponsesRequestTest, ToolsAreFunctions) {
  constexpr std::string_view kTools =
      R"([{"type":"function","name":"f","parameters":{"type":"object"}},
      {"type":"web_search"},{"type":"custom","name":"patch","description":"d"},
      {"type":"namespace","name":"n","tools":[{"type":"function","name":"g","parameters":null}]}])";
  const std::string vllm = Tools(kTools, ChatDialect::kVllm);
  EXPECT_THAT(vllm, HasSubstr(R"({"name":"f","description":null,"parameters":{"type":"object"}})"));
  EXPECT_THAT(vllm, HasSubstr(R"("name":"n__g")"));
  EXPECT_THAT(vllm, HasSubstr(R"("additionalProperties":false)"));
  EXPECT_THAT(vllm, Not(HasSubstr("web_search")));
  const std::string sglang = Tools(kTools, ChatDialect::kSglang);
  EXPECT_THAT(sglang, HasSubstr(R"("strict":false)"));
  EXPECT_THAT(sglang, Not(HasSubstr("\"g\"")));
  EXPECT_THAT(Tools(kTools, ChatDialect::kTrtllm), HasSubstr(R"("name":"n.g")"));
  EXPECT_EQ(Tools("[]", ChatDialect::kVllm), "none");
}

TEST(ResponsesRequestTest, SglangDescribesAGrammar) {
  EXPECT_THAT(Tools(R"([{"type":"custom","name":"p","description":"d","format":
                        {"type":"grammar","syntax":"regex","definition":"a+"}}])",
                    ChatDialect::kSglang),
              HasSubstr(R"(d\n\nThe payload must conform to this regex grammar:\na+)"));
}

TEST(ResponsesRequestTest, TheEffortIsThatOfChats) {
  EXPECT_EQ(*ReadAs(ChatDialect::kVllm, {.input = R"("hi")", .reasoning = R"({"effort":"low"})"})
                 ->reasoning_effort.string(),
            "low");
}

TEST(ResponsesRequestTest, WhatOnlyTheEngineKnowsIsRefused) {
  EXPECT_FALSE(
      ReadAs(ChatDialect::kVllm, {.input = R"("hi")", .previous_response_id = R"("resp_1")"}));
  for (const ChatDialect dialect : {ChatDialect::kVllm, ChatDialect::kSglang}) {
    EXPECT_FALSE(ReadAs(dialect, {.input = R"([{"type":"reasoning","encrypted_content":"x"}])"}));
  }
}

TEST(ResponsesRequestTest, WhatIsNoInputIsRefused) {
  for (const std::string_view wrong : {"5", "{}", "[1]", R"([{"type":"item_reference","id":"x"}])",
                                       R"([{"type":"message","role":"assistant","content":[]}])"}) {
    EXPECT_FALSE(ReadAs(ChatDialect::kVllm, {.input = wrong})) << wrong;
  }
}

}  // namespace
}  // namespace fathom
