// A mock with the files of a model, behind HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "testing/mock_server_fixture.h"
#include "testing/tiny_model.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kHello = R"("messages":[{"role":"user","content":"hello"}])";
constexpr uint64_t kHelloTokens = 9;  // start, user, \n, hello, end, \n, start, assistant, \n

class ModelServerTest : public MockServerTest {
 protected:
  ModelServerTest() {
    options_.language_model = TinyModel();
    options_.profile = "h200-llama-3.1-8b";
    options_.speedup = 1000;
  }

  Json PostJson(std::string_view path, std::string_view body) {
    const auto answer = Post(path, body);
    EXPECT_TRUE(answer) << answer.error().what;
    auto json = Json::Parse(answer->body);
    EXPECT_TRUE(json) << answer->body;
    return *std::move(json);
  }

  static uint64_t PromptTokens(const Json& answer) {
    return *answer.Find("usage")->Find("prompt_tokens")->unsigned_integer();
  }
  static uint64_t Cached(const Json& answer) {
    const Json* details = answer.Find("usage")->Find("prompt_tokens_details");
    return *details->Find("cached_tokens")->unsigned_integer();
  }
  static std::string Content(const Json& answer) {
    const Json& choice = answer.Find("choices")->array()->front();
    return *choice.Find("message")->Find("content")->string();
  }
  static std::vector<uint64_t> Ids(const Json& list) {
    std::vector<uint64_t> ids;
    for (const Json& id : *list.array()) ids.push_back(*id.unsigned_integer());
    return ids;
  }
};

TEST_F(ModelServerTest, CountsTheTokensOfTheModel) {
  Start();
  const Json chat = PostJson(kChatPath, fmt::format(R"({{{},"max_tokens":20}})", kHello));
  EXPECT_EQ(PromptTokens(chat), kHelloTokens);
  EXPECT_THAT(Content(chat), StartsWith("m/0: "));
  const Json text = PostJson(kTextPath, R"({"prompt":"hello tide","max_tokens":3})");
  EXPECT_EQ(PromptTokens(text), 3u);
  const Json bare =
      PostJson(kTextPath, R"({"prompt":"hello tide","max_tokens":3,"add_special_tokens":false})");
  EXPECT_EQ(PromptTokens(bare), 2u);
}

TEST_F(ModelServerTest, CountsThemAlsoWhereNothingIsSimulated) {
  options_.profile = kPaced;
  Start();
  EXPECT_EQ(PromptTokens(PostJson(kChatPath, fmt::format("{{{}}}", kHello))), kHelloTokens);
  EXPECT_EQ(Post(kChatPath, R"({"messages":[{}]})")->status, 400);
}

TEST_F(ModelServerTest, FindsEveryTurnOfAConversationInItsCache) {
  options_.block_size = 4;
  Start();
  std::string messages;
  uint64_t shared = 0;  // tokens of the turn before, with its answer
  for (int turn = 0; turn < 5; ++turn) {
    messages += (turn > 0 ? "," : "") +
                fmt::format(R"({{"role":"user","content":"turn {} of the tide"}})", turn);
    const Json answer =
        PostJson(kChatPath, fmt::format(R"({{"messages":[{}],"max_tokens":30}})", messages));
    // The last token that was generated is not in the cache: nobody has computed with it.
    EXPECT_EQ(Cached(answer), shared == 0 ? 0 : (shared - 1) / 4 * 4) << turn;
    shared = PromptTokens(answer) + 30;
    std::string said;
    AppendJsonString(said, Content(answer));
    messages += fmt::format(R"(,{{"role":"assistant","content":{}}})", said);
  }
}

TEST_F(ModelServerTest, ShowsItsTokensAndTheirText) {
  Start();
  const Json tokens = PostJson("/tokenize", fmt::format("{{{}}}", kHello));
  EXPECT_EQ(*tokens.Find("count")->unsigned_integer(), kHelloTokens);
  std::string listed;
  tokens.Find("tokens")->WriteTo(listed);
  const Json text = PostJson("/detokenize", fmt::format(R"({{"tokens":{}}})", listed));
  EXPECT_EQ(*text.Find("prompt")->string(),
            "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(Stat("tokenize_calls"), 2u);
}

TEST_F(ModelServerTest, HasNoSuchPageAsTensorRtLlmButCountsTheQuestions) {
  options_.engine = MockedEngine::kTrtllm;
  Start();
  EXPECT_EQ(Post("/tokenize", R"({"prompt":"hello"})")->status, 404);
  EXPECT_EQ(Stat("tokenize_calls"), 1u);
  EXPECT_EQ(Stat("text_prompts"), 0u);
}

TEST_F(ModelServerTest, TakesTheIdsOfAChatInPlaceOfItsMessages) {
  options_.engine = MockedEngine::kTrtllm;
  Start();
  const Json answer = PostJson(
      kChatPath, fmt::format(R"({{{},"model":"mock-model","prompt_token_ids":[7,1,2]}})", kHello));
  EXPECT_EQ(PromptTokens(answer), 3u);
  for (const std::string_view ids : {"[]", "7", R"("1")", "[-1]", "[1.5]", "[[1]]", "[100000]"}) {
    const auto refused =
        Post(kChatPath,
             fmt::format(R"({{{},"model":"mock-model","prompt_token_ids":{}}})", kHello, ids));
    EXPECT_EQ(refused->status, 400) << ids;
  }
  EXPECT_EQ(Post(kChatPath, R"({"model":"mock-model","prompt_token_ids":[1]})")->status, 400)
      << "no messages";
}

TEST_F(ModelServerTest, CountsInWhichFormPromptsCome) {
  options_.engine = MockedEngine::kSglang;
  Start();
  Post(kChatPath, fmt::format("{{{}}}", kHello));
  Post(kChatPath, fmt::format(R"({{{},"input_ids":[1]}})", kHello));
  Post(kTextPath, R"({"prompt":[1,2]})");
  Post(kTextPath, R"({"prompt":[[1],[2]]})");
  Post(kTextPath, R"({"prompt":"hello"})");
  EXPECT_EQ(Stat("completed"), 5u);
  EXPECT_EQ(Stat("chat_prompts"), 1u);
  EXPECT_EQ(Stat("ids_prompts"), 3u);
  EXPECT_EQ(Stat("text_prompts"), 1u);
  EXPECT_EQ(Stat("tokenize_calls"), 0u);
}

}  // namespace
}  // namespace fathom
