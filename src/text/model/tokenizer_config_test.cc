#include "text/model/tokenizer_config.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(TokenizerConfig, ReadsTokensWithARole) {
  const auto config = ReadTokenizerConfig(
      R"({"bos_token":"<s>","eos_token":{"content":"</s>","lstrip":false},"unk_token":null,)"
      R"("add_bos_token":true,"model_max_length":1e30})");
  ASSERT_TRUE(config);
  using Role = std::pair<std::string, std::string>;
  EXPECT_EQ(config->roles, (std::vector<Role>{{"bos_token", "<s>"}, {"eos_token", "</s>"}}));
}

TEST(TokenizerConfig, ReadsAddedTokensInTheOrderOfTheirIds) {
  const auto config =
      ReadTokenizerConfig(R"({"added_tokens_decoder":{"12":{"content":"b","special":true},)"
                          R"("3":{"content":"a","lstrip":true}}})");
  ASSERT_TRUE(config);
  ASSERT_EQ(config->added.size(), 2u);
  EXPECT_EQ(config->added[0].content, "a");
  EXPECT_EQ(config->added[0].id, 3u);
  EXPECT_TRUE(config->added[0].lstrip);
  EXPECT_TRUE(config->added[0].normalized);
  EXPECT_TRUE(config->added[1].special);
  EXPECT_FALSE(config->added[1].normalized);
}

TEST(TokenizerConfig, ReadsOneTemplateOrSeveral) {
  const auto one = ReadTokenizerConfig(R"({"chat_template":"t"})");
  ASSERT_TRUE(one);
  ASSERT_EQ(one->templates.size(), 1u);
  EXPECT_EQ(one->templates[0].first, "default");
  const auto several = ReadTokenizerConfig(
      R"({"chat_template":[{"name":"default","template":"t"},{"name":"tool_use","template":"u"}]})");
  ASSERT_TRUE(several);
  ASSERT_EQ(several->templates.size(), 2u);
  EXPECT_EQ(several->templates[1].second, "u");
}

TEST(TokenizerConfig, SaysWhatIsWrong) {
  const auto problem = [](std::string_view text) {
    const auto config = ReadTokenizerConfig(text);
    return config ? std::string() : config.error().what;
  };
  EXPECT_EQ(problem("[]"), "is not a JSON object");
  EXPECT_EQ(problem(R"({"added_tokens_decoder":{"x":{"content":"a"}}})"),
            "added_tokens_decoder: 'x' is not a token");
  EXPECT_EQ(problem(R"({"chat_template":1})"), "chat_template is not a text");
  EXPECT_EQ(problem(R"({"chat_template":[{"name":"a"}]})"),
            "chat_template: an entry without name and template");
}

TEST(TokenizerConfig, KnowsWhichClassBuildsItsOwnPipeline) {
  const auto pipeline = [](std::string_view text, std::string_view model_type = "llama") {
    return ClassPipeline(*ReadTokenizerConfig(text), model_type);
  };
  EXPECT_FALSE(pipeline("{}"));
  EXPECT_FALSE(pipeline(R"({"tokenizer_class":"PreTrainedTokenizerFast"})"));
  EXPECT_FALSE(pipeline(R"({"tokenizer_class":"LlamaTokenizer","auto_map":{}})"));
  EXPECT_FALSE(pipeline(R"({"tokenizer_class":"LlamaTokenizer"})", "mistral"));
  const auto usual = pipeline(R"({"tokenizer_class":"LlamaTokenizerFast"})", "");
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->prepend_scheme, "first");
  EXPECT_EQ(pipeline(R"({"tokenizer_class":"LlamaTokenizer","legacy":true})")->prepend_scheme,
            "always");
  EXPECT_EQ(
      pipeline(R"({"tokenizer_class":"LlamaTokenizer","add_prefix_space":false})")->prepend_scheme,
      "never");
}

TEST(GenerationConfig, NamesTheBosToken) {
  EXPECT_EQ(ReadGenerationBos(R"({"bos_token_id":7})").value(), std::optional<TokenId>(7));
  EXPECT_EQ(ReadGenerationBos(R"({"bos_token_id":null})").value(), std::nullopt);
  EXPECT_EQ(ReadGenerationBos(R"({"bos_token_id":-1})").value(), std::nullopt);
  EXPECT_FALSE(ReadGenerationBos("nonsense"));
}

}  // namespace
}  // namespace fathom
