#include "mock/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mock/toy_tokenizer.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Chat(std::string_view messages, std::string_view tools = {}) {
  const auto text = RenderChat({.messages = messages, .tools = tools});
  return text ? *text : text.error().what;
}

TEST(Prompt, IsTheMessagesOfAChatBetweenTheirTokens) {
  EXPECT_EQ(Chat(R"([{"role":"system","content":"a"},{"content":"b\nc","role":"user"}])"),
            "<|system|>a<|end|><|user|>b\nc<|end|><|assistant|>");
  EXPECT_EQ(Chat("[]"), "<|assistant|>");
}

TEST(Prompt, TakesContentInParts) {
  EXPECT_EQ(Chat(R"([{"role":"user","content":[{"type":"text","text":"a"},"b"]}])"),
            "<|user|>ab<|end|><|assistant|>");
  const std::string image =
      Chat(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])");
  EXPECT_THAT(image, HasSubstr("<|user|>[image_url:"));
  EXPECT_NE(image,
            Chat(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"y"}}]}])"));
}

TEST(Prompt, HasToolsBeforeTheMessagesAndToolCallsInThem) {
  EXPECT_EQ(Chat(R"([{"role":"assistant","content":null,"tool_calls":[1]}])", R"([{"a":1}])"),
            R"(<|system|>[{"a":1}]<|end|><|assistant|>[1]<|end|><|assistant|>)");
}

TEST(Prompt, CanLeaveTheLastMessageOpen) {
  ChatBody chat{.messages = R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])",
                .tools = {},
                .add_generation_prompt = false,
                .continue_final_message = true};
  EXPECT_EQ(*RenderChat(chat), "<|user|>a<|end|><|assistant|>b");
  chat.add_generation_prompt = true;
  EXPECT_FALSE(RenderChat(chat));
}

TEST(Prompt, OfAFollowUpBeginsWithThePromptBeforeAndItsAnswer) {
  const auto first = Tokenize(Chat(R"([{"role":"user","content":"how deep is it"}])"));
  std::vector<TokenId> expected = first;
  AppendTokens(expected, "mock-1/0: mark twa");
  const auto next = Tokenize(Chat(
      R"([{"role":"user","content":"how deep is it"},)"
      R"({"role":"assistant","content":"mock-1/0: mark twa"},{"role":"user","content":"x"}])"));
  ASSERT_GT(next.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), next.begin()));
}

TEST(Prompt, CanBeTextIdsOrSeveralOfEach) {
  const auto of = [](std::string_view body) {
    const auto request = ParseCompletionRequest(body);
    return *PromptsOf(*request, false);
  };
  EXPECT_THAT(of(R"({"prompt":"abc"})"), ElementsAre(Tokenize("abc")));
  EXPECT_THAT(of(R"({"prompt":[1, 2,3]})"), ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_THAT(of(R"({"prompt":["a","b"]})"), ElementsAre(Tokenize("a"), Tokenize("b")));
  EXPECT_THAT(of(R"({"prompt":[[1],[2,3]]})"), ElementsAre(ElementsAre(1), ElementsAre(2, 3)));
}

TEST(Prompt, RefusesWhatIsNone) {
  for (const std::string_view body : {R"({})", R"({"prompt":7})", R"({"prompt":[1,-2]})",
                                      R"({"prompt":[4294967296]})", R"({"prompt":[1,"a"]})"}) {
    EXPECT_FALSE(PromptsOf(*ParseCompletionRequest(body), false)) << body;
  }
  for (const std::string_view body : {R"({})", R"({"messages":"hi"})", R"({"messages":["hi"]})",
                                      R"({"messages":[{"role":1}]})"}) {
    EXPECT_FALSE(PromptsOf(*ParseCompletionRequest(body), true)) << body;
  }
}

}  // namespace
}  // namespace fathom
