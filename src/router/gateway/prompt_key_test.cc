#include "router/gateway/prompt_key.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fathom {
namespace {

constexpr uint64_t kSecret = 7;

PromptFields Chat(std::string_view messages) {
  PromptFields parts;
  parts.messages = messages;
  return parts;
}

TextKey KeyOf(const PromptFields& parts, std::string_view model = "m", uint64_t secret = kSecret) {
  return PromptKeys(model, EngineKind::kVllm, parts, secret).whole();
}

TEST(PromptKeys, DifferInWhateverDecidesOverTheTokens) {
  const std::string_view messages = R"([{"role":"user","content":"a"}])";
  std::vector<TextKey> keys = {KeyOf(Chat(messages)), KeyOf(Chat(messages), "n"),
                               KeyOf(Chat(messages), "m", 8)};
  for (const PromptField& field : kPromptFields) {
    if (field.vllm == PromptField::Asked::kNot) continue;
    PromptFields parts = Chat(messages);
    parts.*field.value = R"(["x"])";
    keys.push_back(KeyOf(parts));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(keys[i] == keys[j]) << i << " and " << j;
  }
}

TEST(PromptKeys, LeaveOutWhatTheEngineDoesNotLookAt) {
  const PromptFields plain = Chat(R"([{"role":"user","content":"a"}])");
  PromptFields chosen = plain;
  chosen.tool_choice = R"("none")";
  const auto key = [](EngineKind engine, const PromptFields& parts) {
    return PromptKeys("m", engine, parts, kSecret).whole();
  };
  EXPECT_TRUE(key(EngineKind::kVllm, plain) == key(EngineKind::kVllm, chosen));
  EXPECT_FALSE(key(EngineKind::kSglang, plain) == key(EngineKind::kSglang, chosen));
}

TEST(PromptKeys, DifferWhereOnePartEndsAndTheNextBegins) {
  EXPECT_FALSE(KeyOf(Chat(R"(["ab","c"])")) == KeyOf(Chat(R"(["a","bc"])")));
  EXPECT_FALSE(KeyOf(Chat(R"(["a","b"])")) == KeyOf(Chat(R"(["b","a"])")));
  EXPECT_FALSE(KeyOf(Chat(R"([["a"],"b"])")) == KeyOf(Chat(R"([["a","b"]])")));
  EXPECT_FALSE(KeyOf(Chat("[]")) == KeyOf(Chat("")));
  EXPECT_FALSE(KeyOf(Chat(R"("a")")) == KeyOf(Chat(R"("b")")));
  EXPECT_FALSE(KeyOf({.prompt = "\"a\""}) == KeyOf({.prompt = "\"b\""}));
  EXPECT_FALSE(KeyOf({.prompt = "\"a\""}) == KeyOf(Chat("\"a\"")));
}

TEST(PromptKeys, AreTheSameWhateverSpaceStandsBetweenMessages) {
  EXPECT_TRUE(KeyOf(Chat(R"([ {"a":1} ,
    {"b":2}])")) == KeyOf(Chat(R"([{"a":1},{"b":2}])")));
}

TEST(PromptKeys, MeetTheKeysOfEarlierTurns) {
  const PromptKeys keys("m", EngineKind::kVllm, Chat("[1,2,3,4]"), kSecret);
  ASSERT_EQ(keys.earlier(), 3u);
  EXPECT_TRUE(keys.Earlier(0) == KeyOf(Chat("[1,2,3]")));
  EXPECT_TRUE(keys.Earlier(1) == KeyOf(Chat("[1,2]")));
  EXPECT_TRUE(keys.Earlier(2) == KeyOf(Chat("[1]")));
}

TEST(PromptKeys, OfAChatWithFewMessagesHaveNothingBefore) {
  EXPECT_EQ(PromptKeys("m", EngineKind::kVllm, Chat("[]"), kSecret).earlier(), 0u);
  EXPECT_EQ(PromptKeys("m", EngineKind::kVllm, Chat("[1]"), kSecret).earlier(), 0u);
  EXPECT_EQ(PromptKeys("m", EngineKind::kVllm, {.prompt = "\"a\""}, kSecret).earlier(), 0u);
}

TEST(PromptKeys, ReachBackSoFarAndNoFurther) {
  std::string messages = "[0";
  std::string before = messages;  // without the last message
  for (int i = 1; i < 1000; ++i) {
    before = messages;
    messages += "," + std::to_string(i);
  }
  const PromptKeys keys("m", EngineKind::kVllm, Chat(messages + "]"), kSecret);
  ASSERT_EQ(keys.earlier(), PromptKeys::kReach - 1);
  EXPECT_TRUE(keys.Earlier(0) == KeyOf(Chat(before + "]")));
  std::string oldest = "[0";
  for (size_t i = 1; i <= 999 - keys.earlier(); ++i) oldest += "," + std::to_string(i);
  EXPECT_TRUE(keys.Earlier(keys.earlier() - 1) == KeyOf(Chat(oldest + "]")));
}

}  // namespace
}  // namespace fathom
