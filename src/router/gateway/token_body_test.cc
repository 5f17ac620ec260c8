#include "router/gateway/token_body.h"

#include <gtest/gtest.h>

#include <vector>

namespace fathom {
namespace {

const std::vector<TokenId> kTokens = {1, 22, 333};

RequestFields Fields(std::string_view body) {
  auto fields = ReadRequestFields(body);
  EXPECT_TRUE(fields) << body;
  return fields.value_or(RequestFields());
}

std::string Sent(std::string_view body, Route route, EngineKind engine) {
  return WithTokenIds(body, Fields(body), route, engine, kTokens);
}

bool Takes(std::string_view body, Route route, EngineKind engine) {
  return TakesTokenIds(engine, route, Fields(body));
}

TEST(TokenBody, ReplacesThePromptOfACompletionAndNothingElse) {
  EXPECT_EQ(
      Sent(R"({ "model":"m", "prompt" : "a\"b" ,"n":1e0})", Route::kCompletions, EngineKind::kVllm),
      R"({ "model":"m", "prompt" : [1,22,333] ,"n":1e0})");
}

TEST(TokenBody, ReplacesTheLastOfTwoPromptsWhichIsTheOneThatCounts) {
  EXPECT_EQ(Sent(R"({"prompt":"a","prompt":"b"})", Route::kCompletions, EngineKind::kVllm),
            R"({"prompt":"a","prompt":[1,22,333]})");
}

TEST(TokenBody, AddsToAChatWhatItsEngineKnows) {
  const std::string_view body = R"( {"messages":[]})";
  EXPECT_EQ(Sent(body, Route::kChat, EngineKind::kSglang),
            R"( {"input_ids":[1,22,333],"messages":[]})");
  EXPECT_EQ(Sent(body, Route::kChat, EngineKind::kTrtllm),
            R"( {"prompt_token_ids":[1,22,333],"messages":[]})");
}

TEST(TokenBody, IsOnlyForEnginesThatTakeIt) {
  const std::string_view chat = R"({"messages":[{"role":"user","content":"a"}]})";
  EXPECT_TRUE(Takes(chat, Route::kChat, EngineKind::kSglang));
  EXPECT_TRUE(Takes(chat, Route::kChat, EngineKind::kTrtllm));
  EXPECT_FALSE(Takes(chat, Route::kChat, EngineKind::kVllm));
  EXPECT_FALSE(Takes(chat, Route::kChat, EngineKind::kUnknown));
  for (const EngineKind engine : {EngineKind::kVllm, EngineKind::kSglang, EngineKind::kTrtllm}) {
    EXPECT_TRUE(Takes(R"({"prompt":"a"})", Route::kCompletions, engine));
    EXPECT_FALSE(Takes(R"({"prompt":"a","echo":true})", Route::kCompletions, engine));
    EXPECT_FALSE(Takes(R"({"prompt":["a"]})", Route::kCompletions, engine));
    EXPECT_FALSE(Takes(R"({"prompt":[1,2]})", Route::kCompletions, engine));
  }
  EXPECT_FALSE(Takes(R"({"prompt":"a"})", Route::kCompletions, EngineKind::kUnknown));
}

TEST(TokenBody, LeavesChatsAloneThatBringTheirOwnTokens) {
  for (const char* const member : {"input_ids", "prompt_token_ids"}) {
    const std::string body = std::string("{\"messages\":[],\"") + member + "\":[1]}";
    EXPECT_FALSE(Takes(body, Route::kChat, EngineKind::kSglang)) << body;
    EXPECT_FALSE(Takes(body, Route::kChat, EngineKind::kTrtllm)) << body;
  }
}

TEST(TokenBody, LeavesAToolThatIsNamedToTensorRtLlm) {
  const std::string_view body =
      R"({"messages":[],"tool_choice":{"type":"function","function":{"name":"f"}}})";
  EXPECT_FALSE(Takes(body, Route::kChat, EngineKind::kTrtllm));
  EXPECT_TRUE(Takes(body, Route::kChat, EngineKind::kSglang));
}

}  // namespace
}  // namespace fathom
