#include "router/gateway/early_end.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

bool EndedEarly(AnswerForm form, std::string_view answer) {
  EndReader reader(form);
  reader.Feed(answer);
  return reader.ended_early();
}

size_t FoundAt(AnswerForm form, std::string_view events) { return StreamEnd(form).Find(events); }

constexpr size_t kNowhere = std::string_view::npos;

TEST(EarlyEnd, IsAFinishReasonOfAChoice) {
  constexpr auto kForm = AnswerForm::kCompletion;
  EXPECT_TRUE(EndedEarly(kForm, R"({"choices":[{"text":"half","finish_reason":"abort"}]})"));
  EXPECT_TRUE(EndedEarly(kForm, R"({"choices":[{"finish_reason":"stop"},
                                               {"finish_reason":"abort"}]})"));
  EXPECT_TRUE(
      EndedEarly(kForm, R"({"choices":[{"finish_reason":{"type":"abort","message":"x"}}]})"));
  EXPECT_TRUE(
      EndedEarly(kForm, R"({"text":"half","meta_info":{"finish_reason":{"type":"abort"}}})"));
  EXPECT_TRUE(EndedEarly(AnswerForm::kGenerate,
                         R"({"text":"half","meta_info":{"finish_reason":{"type":"abort"}}})"));
  EXPECT_FALSE(EndedEarly(AnswerForm::kGenerate,
                          R"({"text":"abort","meta_info":{"finish_reason":{"type":"stop"}}})"));
  for (const char* const other : {"stop", "length", "tool_calls"}) {
    EXPECT_FALSE(
        EndedEarly(kForm, std::string(R"({"choices":[{"finish_reason":")") + other + "\"}]}"));
  }
}

TEST(EarlyEnd, IsNotAnAbortThatTheRequestCaused) {
  EXPECT_FALSE(EndedEarly(
      AnswerForm::kCompletion,
      R"({"choices":[{"finish_reason":{"type":"abort","message":"too long","status_code":400}}]})"));
  EXPECT_TRUE(EndedEarly(
      AnswerForm::kCompletion,
      R"({"choices":[{"finish_reason":{"type":"abort","message":"stop","status_code":503}}]})"));
}

TEST(EarlyEnd, IsNotInTheTextOfAnAnswer) {
  EXPECT_FALSE(EndedEarly(
      AnswerForm::kCompletion,
      R"({"choices":[{"message":{"content":"\"finish_reason\":\"abort\"","finish_reason":"abort"},
          "finish_reason":"stop"}],"finish_reason":"abort"})"));
  EXPECT_FALSE(EndedEarly(AnswerForm::kOther, R"({"choices":[{"finish_reason":"abort"}]})"));
}

TEST(EarlyEnd, IsAMessageWithoutAStopReason) {
  constexpr auto kForm = AnswerForm::kMessages;
  EXPECT_TRUE(EndedEarly(kForm, R"({"type":"message","content":[],"stop_reason":null})"));
  EXPECT_TRUE(EndedEarly(kForm, R"({"type":"message","content":[]})"));
  EXPECT_TRUE(EndedEarly(kForm, R"({"stop_reason":"abort","type":"message"})"));
  EXPECT_FALSE(EndedEarly(kForm, R"({"type":"message","stop_reason":"max_tokens"})"));
  EXPECT_FALSE(EndedEarly(kForm, R"({"type":"error","error":{"type":"api_error"}})"));
}

TEST(EarlyEnd, IsAResponseThatWasCancelledButNotByItsClient) {
  constexpr auto kForm = AnswerForm::kResponses;
  EXPECT_TRUE(
      EndedEarly(kForm, R"({"object":"response","status":"cancelled","background":false})"));
  EXPECT_TRUE(EndedEarly(
      kForm,
      R"({"object":"response","status":"incomplete","incomplete_details":{"reason":"abort"}})"));
  EXPECT_FALSE(
      EndedEarly(kForm, R"({"object":"response","status":"cancelled","background":true})"));
  EXPECT_FALSE(EndedEarly(
      kForm, R"({"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},
                 "output":[{"status":"cancelled"}]})"));
}

TEST(EarlyEnd, OfAStreamIsTheEventWithTheAbort) {
  const std::string before =
      "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"abort\\\"\"}}]}\n\n";
  const std::string abort = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"abort\"}]}\n\n";
  const std::string done = "data: [DONE]\n\n";
  EXPECT_EQ(FoundAt(AnswerForm::kCompletion, before + abort + done), before.size());
  EXPECT_EQ(FoundAt(AnswerForm::kCompletion, before + done), kNowhere);
  EXPECT_EQ(FoundAt(AnswerForm::kCompletion, ": \"abort\"\n\n" + done), kNowhere);
}

TEST(EarlyEnd, OfAStreamOfMessagesIsItsEndWithoutAStopReason) {
  constexpr auto kForm = AnswerForm::kMessages;
  const std::string start =
      "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\","
      "\"stop_reason\":null}}\n\n";
  const std::string none =
      "event: message_delta\ndata: "
      "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null}}\n\n";
  const std::string turn =
      "event: message_delta\ndata: {\"type\":\"message_delta\","
      "\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
  const std::string stop = "event: message_stop\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n";
  EXPECT_EQ(FoundAt(kForm, start + none + stop), start.size() + none.size());
  EXPECT_EQ(FoundAt(kForm, start + stop), start.size());
  EXPECT_EQ(FoundAt(kForm, start + turn + stop), kNowhere);
  StreamEnd pieces(kForm);
  EXPECT_EQ(pieces.Find(start + turn), kNowhere);
  EXPECT_EQ(pieces.Find(stop), kNowhere);
}

TEST(EarlyEnd, OfAStreamOfResponsesIsItsCancellation) {
  constexpr auto kForm = AnswerForm::kResponses;
  const std::string text =
      "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\","
      "\"delta\":\"cancelled\"}\n\n";
  const std::string end =
      "event: response.completed\ndata: {\"type\":\"response.completed\","
      "\"response\":{\"status\":\"cancelled\"}}\n\n";
  EXPECT_EQ(FoundAt(kForm, text + end), text.size());
  EXPECT_EQ(FoundAt(kForm, text), kNowhere);
  EXPECT_EQ(FoundAt(kForm, "data: {\"type\":\"response.cancelled\"}\n\n"), 0u);
}

TEST(CutStream, IsOneWithoutItsClosingEvent) {
  const auto cut = [](AnswerForm form, std::string_view data, std::string_view end = "\n\n") {
    StreamEnd stream(form);
    stream.Find("data: " + std::string(data) + std::string(end));
    return stream.IsCut();
  };
  EXPECT_TRUE(cut(AnswerForm::kMessages, R"({"type":"message_delta"})"));
  EXPECT_FALSE(cut(AnswerForm::kMessages, R"({"type":"message_stop"})"));
  EXPECT_FALSE(cut(AnswerForm::kMessages, R"({"type":"error","error":{"type":"api_error"}})"));
  EXPECT_TRUE(cut(AnswerForm::kResponses, R"({"type":"response.in_progress","response":{}})"));
  EXPECT_TRUE(cut(AnswerForm::kResponses, R"({"type":"x","response":{"type":"error"}})"));
  for (const char* const last : {"completed", "incomplete", "failed", "cancelled"}) {
    const std::string event =
        std::string(R"({"response":{"error":null},"type":"response.)") + last + "\"}";
    EXPECT_FALSE(cut(AnswerForm::kResponses, event)) << last;
    EXPECT_FALSE(cut(AnswerForm::kResponses, event, "\n")) << last;
    EXPECT_TRUE(cut(AnswerForm::kResponses, event, "")) << "within a line";
  }
  EXPECT_FALSE(cut(AnswerForm::kCompletion, R"({"choices":[]})")) << "not looked for";
}

}  // namespace
}  // namespace fathom
