#include "lab/mock/prompt.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/mock/toy_tokenizer.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;

TEST(Prompt, CanBeTextIdsOrSeveralOfEach) {
  const auto of = [](std::string_view body) {
    const auto request = ParseCompletionRequest(body);
    return *PromptsOf(*request, false, MockOptions());
  };
  EXPECT_THAT(of(R"({"prompt":"abc"})"), ElementsAre(ToyTokens("abc")));
  EXPECT_THAT(of(R"({"prompt":[1, 2,3]})"), ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_THAT(of(R"({"prompt":["a","b"]})"), ElementsAre(ToyTokens("a"), ToyTokens("b")));
  EXPECT_THAT(of(R"({"prompt":[[1],[2,3]]})"), ElementsAre(ElementsAre(1), ElementsAre(2, 3)));
}

TEST(Prompt, RefusesWhatIsNone) {
  for (const std::string_view body : {R"({})", R"({"prompt":7})", R"({"prompt":[1,-2]})",
                                      R"({"prompt":[4294967296]})", R"({"prompt":[1,"a"]})"}) {
    EXPECT_FALSE(PromptsOf(*ParseCompletionRequest(body), false, MockOptions())) << body;
  }
  for (const std::string_view body : {R"({})", R"({"messages":"hi"})", R"({"messages":["hi"]})",
                                      R"({"messages":[{"role":1}]})"}) {
    EXPECT_FALSE(PromptsOf(*ParseCompletionRequest(body), true, MockOptions())) << body;
  }
}

constexpr std::string_view kChatWithIds =
    R"({"messages":[{"role":"user","content":"a"}],"input_ids":[1,2],"prompt_token_ids":[3]})";

TEST(Prompt, OfAChatIsTheIdsThatTheEngineHasAMemberFor) {
  const auto request = ParseCompletionRequest(kChatWithIds);
  MockOptions options;
  EXPECT_THAT(*PromptsOf(*request, true, options),
              ElementsAre(ToyTokens("<|user|>a<|end|><|assistant|>")));
  options.engine = MockedEngine::kSglang;
  EXPECT_THAT(*PromptsOf(*request, true, options), ElementsAre(ElementsAre(1, 2)));
  options.engine = MockedEngine::kTrtllm;
  EXPECT_THAT(*PromptsOf(*request, true, options), ElementsAre(ElementsAre(3)));
}

TEST(Prompt, RefusesIdsOfAChatThatAreNone) {
  MockOptions options;
  options.engine = MockedEngine::kSglang;
  for (const std::string_view ids : {"7", R"("1")", "[-1]", "[1.5]", "[[1]]", "{}", R"(["a"])"}) {
    const std::string body = fmt::format(R"({{"messages":[],"input_ids":{}}})", ids);
    EXPECT_FALSE(PromptsOf(*ParseCompletionRequest(body), true, options)) << ids;
  }
  EXPECT_FALSE(PromptsOf(*ParseCompletionRequest(R"({"input_ids":[1]})"), true, options));
  const auto null = ParseCompletionRequest(R"({"messages":[],"input_ids":null})");
  EXPECT_THAT(*PromptsOf(*null, true, options), ElementsAre(ToyTokens("<|assistant|>")));
}

TEST(Prompt, ComesInOneOfThreeForms) {
  const auto form = [](std::string_view body, bool chat, MockedEngine engine) {
    return FormOf(*ParseCompletionRequest(body), chat, engine);
  };
  EXPECT_EQ(form(kChatWithIds, true, MockedEngine::kVllm), PromptForm::kChat);
  EXPECT_EQ(form(kChatWithIds, true, MockedEngine::kSglang), PromptForm::kIds);
  EXPECT_EQ(form(kChatWithIds, true, MockedEngine::kTrtllm), PromptForm::kIds);
  EXPECT_EQ(form(R"({"prompt":"a"})", false, MockedEngine::kVllm), PromptForm::kText);
  EXPECT_EQ(form(R"({"prompt":["a"]})", false, MockedEngine::kVllm), PromptForm::kText);
  EXPECT_EQ(form(R"({"prompt":[1]})", false, MockedEngine::kVllm), PromptForm::kIds);
  EXPECT_EQ(form(R"({"prompt":[[1]]})", false, MockedEngine::kVllm), PromptForm::kIds);
}

}  // namespace
}  // namespace fathom
