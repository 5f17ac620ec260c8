#include "lab/mock/completion_request.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(CompletionRequest, ReadsWhatAChatAsksFor) {
  const auto request = ParseCompletionRequest(
      R"({"model":"m","stream":true,"max_tokens":7,"stream_options":{"include_usage":true},)"
      R"("messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi there\nyou"}]})");
  ASSERT_TRUE(request) << request.error().what;
  EXPECT_EQ(request->model, "m");
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
  EXPECT_EQ(request->max_tokens, 7u);
  EXPECT_EQ(request->prompt_tokens, 5u);
}

TEST(CompletionRequest, PrefersTheNewNameOfTheLimitInEitherOrder) {
  for (const char* body : {R"({"max_tokens":7,"max_completion_tokens":3})",
                           R"({"max_completion_tokens":3,"max_tokens":7})"}) {
    const auto request = ParseCompletionRequest(body);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->max_tokens, 3u);
  }
}

TEST(CompletionRequest, TakesNullForAnythingOptional) {
  const auto request = ParseCompletionRequest(
      R"({"max_tokens":null,"stream":null,"stream_options":null,"mock_stall_after":null})");
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->max_tokens);
  EXPECT_FALSE(request->stream);
  EXPECT_FALSE(request->stall_after);
}

TEST(CompletionRequest, ShowsWhatATemplateSeesAsItWasWritten) {
  const auto request = ParseCompletionRequest(
      R"({"messages":[{"role":"user"}],"tools":[{"a":1}],"tool_choice":"none","documents":[],)"
      R"("chat_template_kwargs":{"x":true},"reasoning_effort":"low","add_generation_prompt":false,)"
      R"("continue_final_message":true,"add_special_tokens":null,"chat_template":null,)"
      R"("input_ids":[1, 2],"prompt_token_ids":[3]})");
  ASSERT_TRUE(request) << request.error().what;
  EXPECT_EQ(request->chat.messages, R"([{"role":"user"}])");
  EXPECT_EQ(request->chat.tools, R"([{"a":1}])");
  EXPECT_EQ(request->chat.tool_choice, R"("none")");
  EXPECT_EQ(request->chat.documents, "[]");
  EXPECT_EQ(request->chat.chat_template_kwargs, R"({"x":true})");
  EXPECT_EQ(request->chat.reasoning_effort, R"("low")");
  EXPECT_EQ(request->chat.add_generation_prompt, "false");
  EXPECT_EQ(request->chat.continue_final_message, "true");
  EXPECT_EQ(request->chat.add_special_tokens, "");
  EXPECT_EQ(request->chat.chat_template, "");
  EXPECT_EQ(request->input_ids, "[1, 2]");
  EXPECT_EQ(request->prompt_token_ids, "[3]");
  EXPECT_FALSE(ParseCompletionRequest(R"({"add_special_tokens":[]})"));
}

TEST(CompletionRequest, RefusesWhatIsNoJsonAndWrongTypes) {
  for (const char* body :
       {"", "{", "[]", R"({"stream":[true]})", R"({"max_tokens":-1})", R"({"max_tokens":1.5})",
        R"({"model":3})", R"({"max_tokens":1000001})", R"({"model":"m"} x)"}) {
    EXPECT_FALSE(ParseCompletionRequest(body)) << body;
  }
}

TEST(CountTokens, CountsWordsIdsAndTheTextOfParts) {
  EXPECT_EQ(CountTokens(R"("")"), 0u);
  EXPECT_EQ(CountTokens(R"("  one  two ")"), 2u);
  EXPECT_EQ(CountTokens(R"("one\ttwo\r\nthree\"four")"), 3u);
  EXPECT_EQ(CountTokens("[1,2,3]"), 3u);
  EXPECT_EQ(CountTokens(R"(["a b","c"])"), 3u);
  EXPECT_EQ(CountTokens("[[1,2],[3]]"), 3u);
  EXPECT_EQ(CountTokens(R"([{"type":"text","text":"a b c"},{"type":"image_url"}])"), 3u);
  EXPECT_EQ(CountTokens("null"), 0u);
}

}  // namespace
}  // namespace fathom
