#include "text/chat/chat_texts.h"

#include <gtest/gtest.h>

#include "text/chat/messages_request.h"

namespace fathom {
namespace {

// Numbers as Python would write them, so that an engine reads the same ones.
TEST(ChatTextsTest, TheArgumentsOfACallAreAText) {
  const auto source = ReadMessages(
      {.api = PromptApi::kMessages,
       .messages = R"([{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f",)"
                   R"("input":{"a":1e5,"b":123456789012345678901234567890,"c":"\u00fc"}}]}])"},
      ChatDialect::kVllm, {});
  ASSERT_TRUE(source);
  EXPECT_EQ(
      WriteChat(*source).messages,
      R"([{"role":"assistant","tool_calls":[{"id":"t","type":"function","function":{"name":"f",)"
      R"("arguments":"{\"a\":100000.0,\"b\":123456789012345678901234567890,\"c\":\"ü\"}"}}]}])");
}

TEST(ChatTextsTest, WhatIsNotThereIsEmpty) {
  const ChatTexts texts = WriteChat({});
  EXPECT_EQ(texts.messages, "[]");
  EXPECT_EQ(texts.tools + texts.tool_choice + texts.kwargs + texts.reasoning_effort, "");
}

}  // namespace
}  // namespace fathom
