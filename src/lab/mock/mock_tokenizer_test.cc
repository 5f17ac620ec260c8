#include "lab/mock/mock_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lab/mock/answer_text.h"
#include "testing/tiny_model.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class MockTokenizerTest : public testing::Test {
 protected:
  MockTokenizerTest() { options_.language_model = TinyModel(); }

  std::vector<TokenId> ChatTokens(std::string_view messages) const {
    ChatFields chat;
    chat.messages = messages;
    const auto tokens = MockTokenizer(options_).Chat(chat);
    EXPECT_TRUE(tokens) << tokens.error().what;
    return tokens ? *tokens : std::vector<TokenId>();
  }
  std::string ChatText(std::string_view messages) const {
    return MockTokenizer(options_).Decode(ChatTokens(messages));
  }

  MockOptions options_;
};

constexpr std::string_view kTextAndImage =
    R"([{"role":"system","content":"lead"},{"role":"user","content":[{"type":"text","text":"a"},)"
    R"({"type":"image_url","image_url":{"url":"data:x"}},{"type":"text","text":"b"}]}])";

TEST_F(MockTokenizerTest, GivesATextTheTokensOfTheModelAndWhatStandsBeforeThem) {
  const MockTokenizer tokenizer(options_);
  const auto tokens = tokenizer.Text(R"("hello tide<|im_end|>")", {});
  ASSERT_TRUE(tokens) << tokens.error().what;
  ASSERT_EQ(tokens->size(), 4u);
  EXPECT_EQ(tokens->front(), TinyVocabulary::kBegin);
  EXPECT_EQ(tokenizer.Piece((*tokens)[1]), "hello");
  EXPECT_EQ(tokenizer.Piece((*tokens)[2]), " tide");
  EXPECT_EQ(tokens->back(), TinyVocabulary::kEnd);
  const auto bare = tokenizer.Text(R"("hello")", "false");
  EXPECT_THAT(*bare, ElementsAre((*tokens)[1]));
}

TEST_F(MockTokenizerTest, RendersAChatWithTheTemplateOfTheModel) {
  EXPECT_EQ(ChatText(R"([{"role":"user","content":"hello"}])"),
            "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(ChatTokens(R"([{"role":"user","content":"hello"}])").size(), 9u);
}

TEST_F(MockTokenizerTest, PreparesAChatAsTheEngineDoes) {
  constexpr std::string_view kParts =
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])";
  EXPECT_THAT(ChatText(kParts), HasSubstr("user\na\nb<"));
  options_.engine = MockedEngine::kSglang;
  EXPECT_THAT(ChatText(kParts), HasSubstr("user\na b<"));
}

TEST_F(MockTokenizerTest, TellsWhatIsNoTextInItsPlace) {
  EXPECT_THAT(ChatText(kTextAndImage), HasSubstr("system\nlead<|im_end|>\n"));
  EXPECT_THAT(ChatText(kTextAndImage), HasSubstr("user\na\n[image_url:"));
  EXPECT_THAT(ChatText(kTextAndImage), HasSubstr("]\nb<|im_end|>"));
  EXPECT_EQ(ChatTokens(kTextAndImage), ChatTokens(kTextAndImage));
  std::string other(kTextAndImage);
  other.replace(other.find("data:x"), 6, "data:y");
  EXPECT_NE(ChatTokens(kTextAndImage), ChatTokens(other));
  for (const std::string_view part :
       {R"({"type":"input_audio","input_audio":{}})", R"({"type":"hologram","text":"x"})",
        R"({"video_url":{"url":"x"}})"}) {
    EXPECT_THAT(ChatText(fmt::format(R"([{{"role":"user","content":[{}]}}])", part)),
                HasSubstr("user\n["))
        << part;
  }
}

TEST_F(MockTokenizerTest, FindsItsAnswerAgainInTheNextTurn) {
  const MockTokenizer tokenizer(options_);
  const std::string first = R"({"role":"user","content":"hello"})";
  for (size_t count = 1; count < 60; ++count) {
    std::vector<TokenId> turn = ChatTokens("[" + first + "]");
    const auto answer = MakeAnswer({.speaker = "mock-8100"}, turn, count, tokenizer);
    ASSERT_TRUE(answer) << answer.error().what;
    ASSERT_EQ(answer->size(), count);
    turn.insert(turn.end(), answer->begin(), answer->end());
    const std::vector<TokenId> next = ChatTokens(fmt::format(
        R"([{},{{"role":"assistant","content":"{}"}},{{"role":"user","content":"lead"}}])", first,
        tokenizer.Decode(*answer)));
    ASSERT_GT(next.size(), turn.size());
    EXPECT_TRUE(std::equal(turn.begin(), turn.end(), next.begin())) << count;
  }
}

TEST_F(MockTokenizerTest, RefusesWhatTheModelCannotRead) {
  const MockTokenizer tokenizer(options_);
  EXPECT_FALSE(tokenizer.Text("7", {}));
  EXPECT_FALSE(tokenizer.Text({}, {}));
  for (const std::string_view messages : {"", "[]", "7", R"([{"content":"no role"}])"}) {
    ChatFields chat;
    chat.messages = messages;
    EXPECT_FALSE(tokenizer.Chat(chat)) << messages;
  }
  ChatFields own;
  own.messages = R"([{"role":"user","content":"hello"}])";
  own.chat_template = R"("{{ messages }}")";
  const auto refused = tokenizer.Chat(own);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, MatchesRegex("own_template: .*template.*"));
}

TEST_F(MockTokenizerTest, KnowsWhichIdsThereAre) {
  const std::vector<TokenId> known = {0, TinyVocabulary::kEnd};
  const std::vector<TokenId> unknown = {100000};
  EXPECT_TRUE(MockTokenizer(options_).CheckIds(known));
  EXPECT_FALSE(MockTokenizer(options_).CheckIds(unknown));
  EXPECT_TRUE(MockTokenizer(MockOptions()).CheckIds(unknown));
}

}  // namespace
}  // namespace fathom
