#include "router/gateway/usage_question.h"

#include <gtest/gtest.h>

#include <string>

#include "router/gateway/token_body.h"
#include "testing/usage_stream.h"

namespace fathom {
namespace {

using Action = UsageWish::Action;
using AskPolicy = UsageQuestion::Policy;

RequestFields FieldsOf(std::string_view body) {
  auto fields = ReadRequestFields(body);
  EXPECT_TRUE(fields) << body;
  return fields.value_or(RequestFields());
}

bool Open(std::string_view body) { return LeavesUsageOpen(FieldsOf(body)); }

std::string AskedBody(std::string_view body) {
  std::string whole;
  for (const std::string_view piece : WithUsageQuestion(body, FieldsOf(body))) whole += piece;
  return whole;
}

// A stream as an engine sends it, to the end.
UsageStream Stream(const UsageQuestion& question, std::string_view text) {
  UsageStream stream(question.wish());
  stream.Feed(text);
  stream.End();
  return stream;
}

constexpr std::string_view kPlain = "data: {\"choices\":[{}]}\n\n";
constexpr std::string_view kTelling =
    "data: {\"choices\":[{}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,"
    "\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\n";

TEST(UsageQuestion, IsForStreamsWhoseClientSaysNothingAboutIt) {
  EXPECT_TRUE(Open(R"({"stream":true})"));
  EXPECT_TRUE(Open(R"({"stream":true,"stream_options":null})"));
  EXPECT_TRUE(Open(R"({"stream":true,"stream_options":{ "include_usage": false }})"));
  EXPECT_TRUE(
      Open(R"({"stream_options":{"include_usage":true},"stream_options":null,"stream":true})"));
  EXPECT_FALSE(Open(R"({"stream":false})"));
  EXPECT_FALSE(Open(R"({"messages":[]})"));
  for (const char* const options :
       {"{}", "7", "[]", R"({"include_usage":true})", R"({"include_usage":null})",
        R"({"include_usage":false,"continuous_usage_stats":false})",
        R"({"include_usage":false,"include_usage":true})", R"({"include_obfuscation":false})"}) {
    EXPECT_FALSE(Open(R"({"stream":true,"stream_options":)" + std::string(options) + "}"))
        << options;
  }
}

TEST(UsageQuestion, IsAddedToABodyThatStaysAsItIs) {
  EXPECT_EQ(AskedBody(" {\n \"stream\" : true }\n"),
            " {\"stream_options\":{\"include_usage\":true},\n \"stream\" : true }\n");
  EXPECT_EQ(AskedBody(R"({"stream_options" : null ,"stream":true})"),
            R"({"stream_options" : {"include_usage":true} ,"stream":true})");
  EXPECT_EQ(
      AskedBody(R"({"stream_options":7,"stream_options":{"include_usage":false},"stream":true})"),
      R"({"stream_options":7,"stream_options":{"include_usage":true},"stream":true})");
}

TEST(UsageQuestion, GoesTogetherWithTokensInPlaceOfText) {
  const std::vector<TokenId> tokens = {1, 22};
  for (const std::string_view body :
       {R"({"prompt":"a","stream":true})", R"({"prompt":"a","stream_options":null,"stream":true})",
        R"({"stream_options":null,"prompt":"a","stream":true})"}) {
    const RequestFields fields = FieldsOf(body);
    const std::string sent =
        WithTokenIds(body, fields, Route::kCompletions, EngineKind::kVllm, tokens);
    std::string whole;
    for (const std::string_view piece : WithUsageQuestion(sent, fields)) whole += piece;
    const RequestFields read = FieldsOf(whole);
    EXPECT_EQ(read.parts.prompt, "[1,22]") << whole;
    EXPECT_EQ(read.stream_options, R"({"include_usage":true})") << whole;
    EXPECT_TRUE(read.stream) << whole;
  }
}

TEST(UsageQuestion, IsAskedOnceAStreamHasShownThatTheEngineNeedsIt) {
  const std::string_view body = R"({"stream":true})";
  UsageHabits habits;
  UsageQuestion first(Route::kChat, FieldsOf(body), AskPolicy::kMayAsk);
  first.Consider(habits);
  EXPECT_FALSE(first.asks());
  EXPECT_EQ(first.wish().action, Action::kRead);
  first.Learn(Stream(first, kPlain).filter());
  first.Consider(habits);
  EXPECT_TRUE(first.asks());
  EXPECT_EQ(first.wish().action, Action::kTakeOut);
  EXPECT_EQ(Stream(first, kTelling).shown(), kPlain);

  UsageQuestion text(Route::kCompletions, FieldsOf(body), AskPolicy::kMayAsk);
  text.Consider(habits);
  EXPECT_FALSE(text.asks());
}

TEST(UsageQuestion, IsNotAskedOfAnEngineThatTellsUnasked) {
  UsageHabits habits;
  UsageQuestion question(Route::kChat, FieldsOf(R"({"stream":true})"), AskPolicy::kMayAsk);
  for (int i = 0; i < 3; ++i) {
    question.Consider(habits);
    EXPECT_FALSE(question.asks());
    const UsageStream stream = Stream(question, kTelling);
    EXPECT_EQ(stream.shown(), kTelling);
    question.Learn(stream.filter());
  }
}

TEST(UsageQuestion, LearnsNothingFromAStreamThatFailed) {
  UsageHabits habits;
  UsageQuestion question(Route::kChat, FieldsOf(R"({"stream":true})"), AskPolicy::kMayAsk);
  for (const std::string_view text :
       {"data: {\"error\":{}}\n\n", "", "data: {\"choices\":[{}]}\n\ndata: {\"error\":{}}\n\n"}) {
    question.Consider(habits);
    question.Learn(Stream(question, text).filter());
    question.Consider(habits);
    EXPECT_FALSE(question.asks()) << text;
  }
}

TEST(UsageQuestion, IsNotAskedWhereTheClientAsksOrThePolicyForbids) {
  UsageHabits habits;
  UsageQuestion open(Route::kChat, FieldsOf(R"({"stream":true})"), AskPolicy::kMayAsk);
  open.Consider(habits);
  open.Learn(Stream(open, kPlain).filter());
  const auto action = [&](std::string_view body, AskPolicy policy) {
    UsageQuestion question(Route::kChat, FieldsOf(body), policy);
    question.Consider(habits);
    EXPECT_EQ(question.asks(), question.wish().action == Action::kTakeOut);
    return question.wish().action;
  };
  EXPECT_EQ(action(R"({"stream":true})", AskPolicy::kMayAsk), Action::kTakeOut);
  EXPECT_EQ(action(R"({"stream":true})", AskPolicy::kOnlyRead), Action::kRead);
  EXPECT_EQ(action(R"({"stream":true})", AskPolicy::kIgnore), Action::kIgnore);
  EXPECT_EQ(
      action(R"({"stream":true,"stream_options":{"include_usage":true}})", AskPolicy::kMayAsk),
      Action::kRead);
  EXPECT_EQ(action(R"({"stream":false})", AskPolicy::kMayAsk), Action::kRead);
}

}  // namespace
}  // namespace fathom
