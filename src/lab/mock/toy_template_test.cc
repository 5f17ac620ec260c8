#include "lab/mock/toy_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/mock/toy_tokenizer.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;

std::string Chat(std::string_view messages, std::string_view tools = {}) {
  ChatFields chat;
  chat.messages = messages;
  chat.tools = tools;
  const auto text = RenderToyChat(chat);
  return text ? *text : text.error().what;
}

TEST(ToyTemplate, IsTheMessagesOfAChatBetweenTheirTokens) {
  EXPECT_EQ(Chat(R"([{"role":"system","content":"a"},{"content":"b\nc","role":"user"}])"),
            "<|system|>a<|end|><|user|>b\nc<|end|><|assistant|>");
  EXPECT_EQ(Chat("[]"), "<|assistant|>");
}

TEST(ToyTemplate, TakesContentInParts) {
  EXPECT_EQ(Chat(R"([{"role":"user","content":[{"type":"text","text":"a"},"b"]}])"),
            "<|user|>ab<|end|><|assistant|>");
  const std::string image =
      Chat(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])");
  EXPECT_THAT(image, HasSubstr("<|user|>[image_url:"));
  EXPECT_NE(image,
            Chat(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"y"}}]}])"));
}

TEST(ToyTemplate, HasToolsBeforeTheMessagesAndToolCallsInThem) {
  EXPECT_EQ(Chat(R"([{"role":"assistant","content":null,"tool_calls":[1]}])", R"([{"a":1}])"),
            R"(<|system|>[{"a":1}]<|end|><|assistant|>[1]<|end|><|assistant|>)");
}

TEST(ToyTemplate, CanLeaveTheLastMessageOpen) {
  ChatFields chat;
  chat.messages = R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])";
  chat.add_generation_prompt = "false";
  chat.continue_final_message = "true";
  EXPECT_EQ(*RenderToyChat(chat), "<|user|>a<|end|><|assistant|>b");
  chat.add_generation_prompt = {};
  EXPECT_FALSE(RenderToyChat(chat));
}

TEST(ToyTemplate, OfAFollowUpBeginsWithThePromptBeforeAndItsAnswer) {
  const auto first = ToyTokens(Chat(R"([{"role":"user","content":"how deep is it"}])"));
  std::vector<TokenId> expected = first;
  AppendToyTokens(expected, "mock-1/0: mark twa");
  const auto next = ToyTokens(Chat(
      R"([{"role":"user","content":"how deep is it"},)"
      R"({"role":"assistant","content":"mock-1/0: mark twa"},{"role":"user","content":"x"}])"));
  ASSERT_GT(next.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), next.begin()));
}

}  // namespace
}  // namespace fathom
