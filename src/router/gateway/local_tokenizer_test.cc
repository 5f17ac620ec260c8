#include "router/gateway/local_tokenizer.h"

#include <gtest/gtest.h>

#include <latch>

#include "testing/loop_thread.h"
#include "testing/model_fixture.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string ChatBody(const std::string& content) {
  return R"([{"role":"user","content":")" + content + R"("}])";
}

class LocalTokenizerTest : public testing::Test {
 protected:
  struct Outcome {
    LocalTokenizer::Reading reading;
    std::vector<TokenId> tokens;
  };

  ~LocalTokenizerTest() override {
    side_work_.Stop();
    thread_.Stop();
  }

  Outcome Read(const PromptFields& fields, Duration patience = seconds(60)) {
    Outcome out;
    const LocalTokenizer::Manner manner;
    out.reading = thread_.Complete([&] {
      const TimePoint deadline = thread_.loop().now() + patience;
      return local_.Read(model_, fields, manner, deadline, out.tokens);
    });
    return out;
  }
  Outcome Chat(const std::string& content, Duration patience = seconds(60)) {
    const std::string messages = ChatBody(content);
    PromptFields fields;
    fields.messages = messages;
    return Read(fields, patience);
  }

  std::vector<TokenId> Wanted(const std::string& content) {
    const auto encoder = model_->Borrow();
    const std::string text = "<begin><start>user\n" + content + "<end><start>assistant\n";
    return (*encoder).Encode(text, false).value_or(std::vector<TokenId>());
  }

  std::shared_ptr<const LanguageModel> model_ = SmallModel();
  Gauge bytes_;
  TokenCache cache_{1 << 26, bytes_};
  // Jobs wait for this latch.
  std::latch begun_{1};
  std::latch go_{1};
  SideWork side_work_{1};
  LoopThread thread_;
  LocalTokenizer local_{thread_.loop(), side_work_, cache_, 7};
};

TEST_F(LocalTokenizerTest, ReadsAChat) {
  const Outcome out = Chat("hello");
  EXPECT_TRUE(out.reading.whole);
  EXPECT_FALSE(out.reading.inexact);
  EXPECT_EQ(out.tokens, Wanted("hello"));
}

TEST_F(LocalTokenizerTest, ReadsLongTextsOnOtherThreads) {
  for (const size_t bytes : {LocalTokenizer::kMostNewAtOnce * 2, LocalTokenizer::kMostAtOnce * 2}) {
    std::string content;
    while (content.size() < bytes) content += "hello ";
    const Outcome out = Chat(content);
    EXPECT_TRUE(out.reading.whole);
    EXPECT_EQ(out.tokens, Wanted(content));
    EXPECT_FALSE(out.reading.places.empty());
  }
}

// As many turns as the text of the last message says.
constexpr std::string_view kLoops =
    "{% for i in range(messages[-1].content | int) %}{% endfor %}done";

// As many steps, in little time.
constexpr std::string_view kCounts = "{% set r = range(messages[-1].content | int) %}done";

TEST_F(LocalTokenizerTest, RendersOnOtherThreadsWhatTakesManySteps) {
  model_ = SmallModel(kCounts);
  ASSERT_TRUE(side_work_.Run([&] { go_.wait(); }));
  EXPECT_TRUE(Chat("10", milliseconds(20)).reading.whole) << "few steps: on the loop";
  const std::string many = std::to_string(2 * LocalTokenizer::kMostStepsAtOnce);
  const Outcome late = Chat(many, milliseconds(20));
  EXPECT_EQ(late.reading.inexact, Inexact::kTooLate);
  go_.count_down();
  const Outcome out = Chat(many);
  EXPECT_TRUE(out.reading.whole);
  EXPECT_EQ(out.tokens.size(), 4u);
}

TEST_F(LocalTokenizerTest, EndsARenderThatTakesTooLong) {
  model_ = SmallModel(
      "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}"
      "{% endfor %}");
  const Outcome out = Chat("hello");
  EXPECT_EQ(out.reading.inexact, Inexact::kTemplateFailed);
  EXPECT_TRUE(out.reading.problem.starts_with("the template ran for more than"));
}

TEST_F(LocalTokenizerTest, GoesOnWithTheBeginningWhereTheRestIsLate) {
  ASSERT_TRUE(side_work_.Run([&] { go_.wait(); }));
  std::string content;
  while (content.size() < LocalTokenizer::kMostNewAtOnce * 2) content += "hello ";
  const Outcome late = Chat(content, milliseconds(20));
  EXPECT_FALSE(late.reading.whole);
  EXPECT_EQ(late.reading.inexact, Inexact::kTooLate);
  const std::vector<TokenId> wanted = Wanted(content);
  ASSERT_LT(late.tokens.size(), wanted.size());
  EXPECT_TRUE(std::ranges::equal(late.tokens, std::span(wanted).first(late.tokens.size())));
  EXPECT_EQ(late.tokens.front(), kBegin);
  go_.count_down();
  EXPECT_EQ(Chat(content).tokens, wanted) << "the work has gone on";
}

TEST_F(LocalTokenizerTest, SaysThatItHasTooMuchToDo) {
  ASSERT_TRUE(side_work_.Run([&] {
    begun_.count_down();
    go_.wait();
  }));
  begun_.wait();
  while (side_work_.Run([] {})) continue;
  const Outcome out = Chat(std::string(LocalTokenizer::kMostAtOnce * 2, 'a'));
  EXPECT_EQ(out.reading.inexact, Inexact::kOverload);
  EXPECT_TRUE(out.tokens.empty());
  go_.count_down();
}

TEST_F(LocalTokenizerTest, KnowsAPromptUpToAnImage) {
  PromptFields fields;
  fields.messages = R"([{"role":"system","content":"hello"},{"role":"user","content":[)"
                    R"({"type":"image_url","image_url":{"url":"x"}}]}])";
  const Outcome out = Read(fields);
  EXPECT_EQ(out.reading.inexact, Inexact::kImage);
  EXPECT_FALSE(out.reading.whole);
  EXPECT_EQ(std::ranges::count(out.tokens, kStart), 2);
  EXPECT_EQ(std::ranges::count(out.tokens, kEnd), 1);
}

TEST_F(LocalTokenizerTest, RefusesMoreThanAnyContextHolds) {
  const std::string prompt = "\"" + std::string(LocalTokenizer::kLongest, 'a') + "\"";
  PromptFields fields;
  fields.prompt = prompt;
  const Outcome out = Read(fields);
  EXPECT_EQ(out.reading.inexact, Inexact::kTooLong);
  EXPECT_TRUE(out.tokens.empty());
}

TEST_F(LocalTokenizerTest, RefusesAWordThatIsTooLongAndKeepsWhatCameBefore) {
  const Outcome out = Chat(std::string(2 * Tokenizer::kLongestWord, 'a'));
  EXPECT_EQ(out.reading.inexact, Inexact::kTooLong);
  EXPECT_FALSE(out.reading.whole);
  EXPECT_EQ(out.tokens, (std::vector<TokenId>{kBegin, kStart}));
}

TEST_F(LocalTokenizerTest, ReadsTextsWithWhatBeginsThem) {
  PromptFields fields;
  fields.prompt = R"("hello")";
  EXPECT_EQ(Read(fields).tokens, (std::vector<TokenId>{kBegin, kHello}));
  fields.add_special_tokens = "false";
  EXPECT_EQ(Read(fields).tokens, (std::vector<TokenId>{kHello}));
}

}  // namespace
}  // namespace fathom
