#include "router/gateway/agent_usage.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

std::string NamedEvent(const std::string& data) { return "event: x\ndata: " + data + "\n\n"; }

TEST(AgentUsageTest, OfMessagesIsInTheFirstOrTheLastEvents) {
  AgentUsage usage;
  usage.Read(NamedEvent(
      R"({"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":0}}})"));
  EXPECT_EQ(usage.usage(), (EngineUsage{10, std::nullopt}));
  usage.Read(NamedEvent(
      R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":2,)"
      R"("output_tokens":5,"cache_read_input_tokens":7,"cache_creation_input_tokens":1}})"));
  EXPECT_EQ(usage.usage(), (EngineUsage{10, 7, 5}));
}

TEST(AgentUsageTest, AnEventWithoutThePromptChangesNothing) {
  AgentUsage usage;
  usage.Read(
      NamedEvent(
          R"({"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":4}}})") +
      NamedEvent(R"({"type":"message_delta","usage":{"output_tokens":5}})") +
      NamedEvent(R"({"type":"message_delta","usage":{"input_tokens":7,"output_tokens":5}})"));
  EXPECT_EQ(usage.usage(), (EngineUsage{7, 4}));
}

TEST(AgentUsageTest, OfAResponseIsInItsLastEvent) {
  AgentUsage usage;
  usage.Read(NamedEvent(R"({"type":"response.created","response":{"usage":null}})"));
  EXPECT_FALSE(usage.usage());
  usage.Read(NamedEvent(R"({"type":"response.completed","response":{"usage":{"input_tokens":12,)"
                        R"("input_tokens_details":{"cached_tokens":8},"output_tokens":1}}})"));
  EXPECT_EQ(usage.usage(), (EngineUsage{12, 8, 1}));
}

TEST(AgentUsageTest, OfGenerateIsInEveryEventAndReadOnce) {
  AgentUsage usage(AnswerForm::kGenerate);
  const std::string first = NamedEvent(
      R"({"text":"a","meta_info":{"prompt_tokens":9,"cached_tokens":4,"finish_reason":null}})");
  EXPECT_TRUE(usage.Mentions(first));
  usage.Read(first);
  EXPECT_EQ(usage.usage(), (EngineUsage{9, 4}));
  EXPECT_FALSE(usage.Mentions(first)) << "later events need not be looked into";
  EXPECT_FALSE(AgentUsage(AnswerForm::kGenerate).Mentions(NamedEvent(R"({"usage":{}})")));
}

TEST(AgentUsageTest, WhatATextSaysIsNoUsage) {
  const std::string said = NamedEvent(
      R"({"type":"content_block_delta","delta":{"type":"text_delta","text":"\"usage\":{\"input_tokens\":1}"}})");
  EXPECT_FALSE(AgentUsage().Mentions(said));
  AgentUsage usage;
  usage.Read(said + NamedEvent("[DONE]") + NamedEvent("{\"usage\"") +
             NamedEvent(R"({"usage":[1],"message":"usage"})"));
  EXPECT_FALSE(usage.usage());
}

}  // namespace
}  // namespace fathom
