#include "text/model/prompt_parts.h"

#include <gtest/gtest.h>

#include "testing/model_fixture.h"
#include "text/model/literal_text.h"

namespace fathom {
namespace {

class PromptPartsTest : public testing::Test {
 protected:
  PartsSource Source() { return {model_->tokenizer(), cache_, model_->fingerprint(), 7}; }

  std::vector<TokenId> Tokens(PromptText prompt) {
    PromptParts parts(Source(), std::move(prompt));
    missing_ = parts.missing_bytes();
    const auto encoder = model_->Borrow();
    EXPECT_TRUE(parts.Complete(*encoder));
    EXPECT_EQ(parts.missing_bytes(), 0u);
    std::vector<TokenId> tokens;
    parts.AppendTo(tokens);
    places_ = parts.Places();
    return tokens;
  }

  std::vector<TokenId> Alone(std::string_view text) {
    const auto encoder = model_->Borrow();
    return (*encoder).Encode(text, false).value_or(std::vector<TokenId>());
  }

  const std::shared_ptr<const LanguageModel> model_ = SmallModel();
  Gauge bytes_;
  TokenCache cache_{1 << 24, bytes_};
  size_t missing_ = 0;
  std::vector<PromptParts::Place> places_;
};

TEST_F(PromptPartsTest, HasTheTokensOfTheWholeText) {
  const std::string text = "<begin><start>user\nhello hello<end>";
  EXPECT_EQ(Tokens({.text = text}), Alone(text));
  EXPECT_EQ(Alone(text).front(), kBegin);
}

TEST_F(PromptPartsTest, AddsWhatThePostProcessorPutsAround) {
  std::vector<TokenId> wanted = {kBegin};
  for (const TokenId token : Alone("hello")) wanted.push_back(token);
  EXPECT_EQ(Tokens({.text = "hello", .add_special = true}), wanted);
}

TEST_F(PromptPartsTest, EncodesOnlyWhatIsNew) {
  const std::string first = "<start>system\n" + std::string(500, 'a') + "<end>";
  Tokens({.text = first});
  EXPECT_EQ(missing_, 7 + 500u);
  const std::string turn = first + "<start>user\n" + std::string(100, 'b') + "<end>";
  const auto tokens = Tokens({.text = turn});
  EXPECT_EQ(missing_, 5 + 100u) << "the text of the first turn is known";
  EXPECT_EQ(tokens, Alone(turn));
}

TEST_F(PromptPartsTest, FindsASystemPromptAgainUnderAnotherConversation) {
  const std::string system = "<start>" + std::string(500, 'a') + "<end>";
  Tokens({.text = system + "<start>" + std::string(50, 'b')});
  Tokens({.text = system + "<start>" + std::string(60, 'c')});
  EXPECT_EQ(missing_, 60u);
}

TEST_F(PromptPartsTest, CutsLongTextsAtEndsOfLinesSoThatTheyCanGrow) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "line hello " + std::to_string(i) + "\n";
  EXPECT_EQ(Tokens({.text = text}), Alone(text));
  EXPECT_EQ(missing_, text.size());
  text += "and hello one more";
  EXPECT_EQ(Tokens({.text = text}), Alone(text));
  EXPECT_LT(missing_, 2 * PromptParts::kLongPart);
}

TEST_F(PromptPartsTest, LeavesOutTheLastTextOfAPromptThatGoesOn) {
  EXPECT_EQ(Tokens({.text = "<start>hello<end>hel", .whole = false}),
            (std::vector<TokenId>{kStart, kHello, kEnd}));
  EXPECT_EQ(Tokens({.text = "<start>hello<end>", .whole = false}),
            (std::vector<TokenId>{kStart, kHello, kEnd}));
  EXPECT_TRUE(Tokens({.text = "hel", .whole = false}).empty());
}

TEST_F(PromptPartsTest, NamesPlacesThatOtherPromptsShare) {
  const std::string shared = "<start>" + std::string(200, 'a') + "<end>";
  Tokens({.text = shared + "<start>" + std::string(100, 'b')});
  const auto one = places_;
  Tokens({.text = shared + "<start>" + std::string(100, 'c')});
  const auto other = places_;
  ASSERT_EQ(one.size(), 2u);
  ASSERT_EQ(other.size(), 2u);
  EXPECT_EQ(one[0].key, other[0].key);
  EXPECT_FALSE(one[1].key == other[1].key);
  EXPECT_EQ(one[0].tokens, 201u);
  EXPECT_EQ(one[1].tokens, 303u);
}

TEST_F(PromptPartsTest, FindsNoTokensInLiteralText) {
  const LiteralText literal(model_->tokenizer());
  const std::string text = "a<end>b<start> \xef\xb7\x90 <end";
  const std::string marked = literal.Apply(text, true);
  std::vector<TokenId> wanted;
  for (const char c : text) wanted.push_back(static_cast<uint8_t>(c));
  EXPECT_EQ(Tokens({.text = marked, .literal_marks = true}), wanted);
  EXPECT_EQ(literal.Apply("nothing of that kind", true), "nothing of that kind");
  EXPECT_EQ(WithoutLiteralMarks(marked), text);
  EXPECT_EQ(WithoutLiteralMarks(literal.Apply(text, false)), text);
  EXPECT_TRUE(literal.Apply(text, false).contains("<end>"));
}

TEST_F(PromptPartsTest, KeepsApartWhatBeginsAPromptAndWhatDoesNot) {
  const std::string text(100, 'a');
  Tokens({.text = text});
  Tokens({.text = "<start>" + text});
  EXPECT_EQ(missing_, text.size()) << "a tokenizer may put a space before the first text";
}

TEST_F(PromptPartsTest, NamesNoPlaceAfterAPromptThatBeginsInAnotherWay) {
  const std::string text(100, 'a');
  Tokens({.text = text, .add_special = true});
  const auto completion = places_;
  Tokens({.text = "<begin>" + text});
  ASSERT_EQ(completion.size(), 1u);
  ASSERT_EQ(places_.size(), 1u);
  EXPECT_FALSE(completion[0].key == places_[0].key)
      << "the same tokens here, but not where the first text gets a space";
}

TEST(PromptParts, LeaveOutALastTokenThatMayBecomeALongerOne) {
  ModelFiles files = SmallFiles();
  const std::string behind = R"(],"normalizer")";
  files.tokenizer.insert(files.tokenizer.find(behind),
                         R"(,{"id":263,"content":"<end>!","special":true})");
  const auto model = LanguageModel::Parse(files);
  ASSERT_TRUE(model) << model.error().what;
  Gauge bytes;
  TokenCache cache(0, bytes);
  PromptParts parts({(*model)->tokenizer(), cache, {}, 0},
                    {.text = "<start>hello<end>", .whole = false});
  ASSERT_TRUE(parts.Complete(*(*model)->Borrow()));
  std::vector<TokenId> tokens;
  parts.AppendTo(tokens);
  EXPECT_EQ(tokens, (std::vector<TokenId>{kStart, kHello}));
}

}  // namespace
}  // namespace fathom
