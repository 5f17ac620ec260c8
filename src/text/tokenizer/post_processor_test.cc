#include "text/tokenizer/post_processor.h"

#include <gmock/gmock.h>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Result<PostProcessor> ReadProcessor(std::string_view json) {
  return PostProcessor::Parse(*Json::Parse(json));
}

std::string ProcessorError(std::string_view json) {
  const Result<PostProcessor> processor = ReadProcessor(json);
  return processor ? "parsed" : processor.error().what;
}

constexpr std::string_view kTemplate =
    R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
        {"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],
        "special_tokens":{"<s>":{"id":"<s>","ids":[1,7],"tokens":[]},
                          "</s>":{"id":"</s>","ids":[2],"tokens":[]}}})";

TEST(PostProcessor, PutsTokensAroundAPrompt) {
  const Result<PostProcessor> processor = ReadProcessor(kTemplate);
  ASSERT_TRUE(processor);
  EXPECT_THAT(processor->prefix, ElementsAre(1, 7));
  EXPECT_THAT(processor->suffix, ElementsAre(2));
  const Result<PostProcessor> roberta =
      ReadProcessor(R"({"type":"RobertaProcessing","cls":["<s>",0],"sep":["</s>",2]})");
  ASSERT_TRUE(roberta);
  EXPECT_THAT(roberta->prefix, ElementsAre(0));
  EXPECT_THAT(roberta->suffix, ElementsAre(2));
}

TEST(PostProcessor, AddsNothingWhenThereIsNone) {
  EXPECT_THAT(ReadProcessor("null")->prefix, IsEmpty());
  EXPECT_THAT(ReadProcessor(R"({"type":"ByteLevel"})")->prefix, IsEmpty());
}

TEST(PostProcessor, PutsTheLaterAroundTheEarlier) {
  const Result<PostProcessor> processor =
      ReadProcessor(fmt::format(R"({{"type":"Sequence","processors":[{},{{"type":"ByteLevel"}},
           {{"type":"BertProcessing","cls":["c",5],"sep":["d",6]}}]}})",
                                kTemplate));
  ASSERT_TRUE(processor);
  EXPECT_THAT(processor->prefix, ElementsAre(5, 1, 7));
  EXPECT_THAT(processor->suffix, ElementsAre(2, 6));
}

TEST(PostProcessor, RefusesWhatIsBrokenOrUnknown) {
  EXPECT_EQ(ProcessorError(R"({"type":"Odd"})"), "not supported: post_processor Odd");
  EXPECT_EQ(ProcessorError(R"({"type":"TemplateProcessing","single":[],"special_tokens":{}})"),
            "not supported: a template without one $A");
  EXPECT_EQ(ProcessorError(R"({"type":"TemplateProcessing","special_tokens":{},
                        "single":[{"SpecialToken":{"id":"<s>"}}]})"),
            "'<s>' is missing");
  EXPECT_EQ(ProcessorError(R"({"type":"TemplateProcessing","single":[{}],"special_tokens":{}})"),
            "'single' has a piece of an unknown kind");
  EXPECT_EQ(ProcessorError(R"({"type":"BertProcessing","cls":["c",-1],"sep":["d",6]})"),
            "a post-processor's id is not a token id");
  EXPECT_EQ(ProcessorError(R"({"type":"BertProcessing","cls":["c"],"sep":["d",6]})"),
            "'cls' is not a pair of token and id");
}

}  // namespace
}  // namespace fathom
