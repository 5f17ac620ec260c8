#include "router/gateway/tokenizer_builds.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

constexpr TimePoint kBegin{std::chrono::seconds(1000)};

// Whose class puts a word mark before a text, and whose file does not.
std::shared_ptr<const LanguageModel> TwoBuilds() {
  const auto model = LanguageModel::Parse(
      {.tokenizer =
           R"({"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,)"
           R"("decoder":null,"model":{"type":"BPE","vocab":{"▁":0,"d":1,"e":2,"p":3,"t":4,"h":5},)"
           R"("merges":[]}})",
       .tokenizer_config = R"({"tokenizer_class":"LlamaTokenizer"})"});
  return model ? *model : nullptr;
}

std::vector<TokenId> Encoded(const LanguageModel& model, std::string_view text) {
  return *(*model.Borrow()).Encode(text, true);
}

TEST(TokenizerBuilds, TakeTheOneThatTheEngineHas) {
  const auto model = TwoBuilds();
  ASSERT_TRUE(model && model->by_file());
  Log log(2, LogLevel::kOff);
  for (const bool by_file : {true, false}) {
    TokenizerBuilds builds(log);
    EXPECT_EQ(builds.Choose(model), model) << "until it is known";
    EXPECT_TRUE(builds.ShouldAsk(*model, kBegin));
    EXPECT_FALSE(builds.ShouldAsk(*model, kBegin)) << "not twice at once";
    EXPECT_TRUE(builds.ShouldAsk(*model, kBegin + TokenizerBuilds::kAsksEvery));
    builds.Hear(*model, "m", Encoded(by_file ? *model->by_file() : *model, model->telling_text()));
    EXPECT_EQ(builds.Choose(model), by_file ? model->by_file() : model);
    EXPECT_FALSE(builds.ShouldAsk(*model, kBegin + std::chrono::hours(1)));
  }
}

TEST(TokenizerBuilds, StayWithTheClassWhereTheAnswerIsNeither) {
  const auto model = TwoBuilds();
  ASSERT_TRUE(model);
  Log log(2, LogLevel::kOff);
  TokenizerBuilds builds(log);
  builds.Hear(*model, "m", {7, 7, 7});
  EXPECT_EQ(builds.Choose(model), model);
}

}  // namespace
}  // namespace fathom
