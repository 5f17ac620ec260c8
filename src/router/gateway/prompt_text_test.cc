#include "router/gateway/prompt_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Text {
  std::string text;  // whole values only
  bool whole = false;
};

Text TextOf(const PromptFields& parts, EngineKind engine = EngineKind::kTrtllm) {
  PromptTextReader reader;
  std::vector<TokenId> values;
  Text out;
  out.whole = reader.Read(parts, engine, values);
  out.text.resize(values.size() * sizeof(TokenId));
  if (!values.empty()) std::memcpy(out.text.data(), values.data(), out.text.size());
  return out;
}

Text TextOfBody(const std::string& body, PromptApis apis, EngineKind engine = EngineKind::kTrtllm) {
  const auto fields = ReadRequestFields(body);
  EXPECT_TRUE(fields) << body;
  return TextOf(PartsOf(fields->parts, apis), engine);
}
Text TextOfChat(const std::string& messages, const std::string& more = "") {
  return TextOfBody(R"({"messages":)" + messages + more + "}", kInChats);
}

// Bytes in which both begin.
size_t Shared(const Text& a, const Text& b) {
  const auto end = std::ranges::mismatch(a.text, b.text).in1;
  return static_cast<size_t>(end - a.text.begin());
}

const std::string kLong(400, 'w');

TEST(PromptText, OfACompletionIsItsText) {
  const Text text = TextOf({.prompt = R"("How d\u00e9ep\nis it?")"});
  EXPECT_TRUE(text.whole);
  EXPECT_THAT(text.text, HasSubstr("How d\xc3\xa9"
                                   "ep\nis"));
}

TEST(PromptText, OfAFollowUpBeginsLikeThatOfTheTurnBeforeIt) {
  const std::string first =
      R"({"role":"system","content":")" + kLong + R"("},{"role":"user","content":"How deep?"})";
  const Text one = TextOfChat("[" + first + "]");
  const Text two = TextOfChat("[" + first + R"(,{"role":"assistant","content":"3 m"}])");
  EXPECT_TRUE(one.whole && two.whole);
  EXPECT_EQ(Shared(one, two), one.text.size());
  EXPECT_LT(Shared(one, TextOfChat(R"([{"role":"user","content":")" + kLong + R"("}])")), 10u)
      << "another role is another prompt";
}

TEST(PromptText, IsTheSameInAListOfOnePart) {
  const std::string text = R"("content":")" + kLong + '"';
  const std::string part =
      R"("content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":")" + kLong +
      R"("}])";
  const Text plain = TextOfChat(R"([{"role":"user",)" + text + "}]");
  const Text listed = TextOfChat(R"([{"role":"user",)" + part + "}]");
  EXPECT_EQ(plain.text, listed.text);
}

TEST(PromptText, HasNothingThatNoEngineRenders) {
  const Text a =
      TextOfChat(R"([{"role":"assistant","id":"1","content":null,"tool_calls":[{"id":"call_1",
      "type":"function","function":{"name":"depth","arguments":"{\"at\": 7}"}}]},
      {"role":"tool","tool_call_id":"call_1","content":"3 m deep"}])");
  const Text b = TextOfChat(R"([{"role":"assistant","id":"2","tool_calls":[{"id":"call_2",
      "type":"function","function":{"name":"depth","arguments":"{\"at\": 7}"}}]},
      {"role":"tool","tool_call_id":"call_2","content":"3 m deep"}])");
  EXPECT_EQ(a.text, b.text);
  EXPECT_THAT(a.text, AllOf(HasSubstr("depth"), HasSubstr(R"({"at": 7})"), HasSubstr("3 m")));
}

TEST(PromptText, HasToolsBeforeTheMessages) {
  const Text text =
      TextOfChat(R"([{"role":"user","content":"question"}])", R"(,"tools":[{"name":"depth"}])");
  EXPECT_LT(text.text.find("depth"), text.text.find("question"));
}

TEST(PromptText, OfMessagesHasSystemThoughtsCallsAndResults) {
  const Text text = TextOfBody(R"({"messages":[{"role":"assistant","content":[
      {"type":"thinking","thinking":"hmm","signature":"c2ln"},
      {"type":"tool_use","id":"toolu_1","name":"depth","input":{"at":7}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1",
       "content":[{"type":"text","text":"3 m"}]}]}],"system":"be brief"})",
                               kInMessages);
  EXPECT_TRUE(text.whole);
  EXPECT_THAT(text.text, StartsWith("\x1e"
                                    "be brief"));
  EXPECT_THAT(text.text, AllOf(HasSubstr("hmm"), HasSubstr("depth"), HasSubstr("at:7"),
                               HasSubstr("3 m"), Not(HasSubstr("c2ln")), Not(HasSubstr("toolu"))));
}

TEST(PromptText, OfResponsesHasInstructionsAndItems) {
  const Text text = TextOfBody(R"({"input":[{"role":"user","content":[{"type":"input_text",
      "text":"how deep?"}]},{"type":"reasoning","id":"rs_1","encrypted_content":"enc",
      "summary":[{"type":"summary_text","text":"think"}]},{"type":"function_call","call_id":"c",
      "name":"depth","arguments":"{}"},{"type":"function_call_output","call_id":"c",
      "output":"3 m deep"}],"instructions":"be brief"})",
                               kInResponses);
  EXPECT_TRUE(text.whole);
  EXPECT_THAT(text.text, StartsWith("\x1e"
                                    "be brief"));
  EXPECT_THAT(text.text, AllOf(HasSubstr("how deep?"), HasSubstr("think"), HasSubstr("depth"),
                               HasSubstr("3 m"), Not(HasSubstr("enc"))));
  EXPECT_THAT(TextOf({.input = R"("plain text")"}).text, HasSubstr("plain t"));
}

TEST(PromptText, IsNotChangedByABillingHeaderUnlessTheEngineRendersIt) {
  const auto body = [](const std::string& header) {
    return R"({"messages":[{"role":"user","content":"how deep?"}],"system":[{"type":"text","text":")" +
           header + R"("},{"type":"text","text":")" + kLong + R"("}]})";
  };
  const std::string one = body("x-anthropic-billing-header: cch=1;");
  const std::string two = body("x-anthropic-billing-header: cch=22;");
  EXPECT_EQ(TextOfBody(one, kInMessages).text, TextOfBody(two, kInMessages).text);
  const Text with_more =
      TextOfBody(body(R"(x-anthropic-billing-header: cch=3;\nbe brief)"), kInMessages);
  EXPECT_THAT(with_more.text, StartsWith("\x1e"
                                         "be brief"));
  const Text sglang = TextOfBody(one, kInMessages, EngineKind::kSglang);
  EXPECT_LT(Shared(sglang, TextOfBody(two, kInMessages, EngineKind::kSglang)), 60u);
}

TEST(PromptText, EndsBeforeTheFirstMedium) {
  for (const char* part :
       {R"({"type":"image_url","image_url":{"url":"data:"}})",
        R"({"image_url":{"url":"data:"},"type":"image_url"})",
        R"({"type":"image","source":{"type":"base64","data":"AAAA"}})",
        R"({"type":"input_image","image_url":"https://"})", R"({"type":"input_audio"})"}) {
    const Text text = TextOfChat(R"([{"role":"user","content":[{"type":"text","text":"first"},)" +
                                 std::string(part) + R"(,{"type":"text","text":"second"}]}])");
    EXPECT_FALSE(text.whole) << part;
    EXPECT_THAT(text.text, HasSubstr("fir")) << part;
    EXPECT_THAT(text.text, AllOf(Not(HasSubstr("sec")), Not(HasSubstr("data")))) << part;
  }
  EXPECT_TRUE(TextOfChat(R"([{"role":"assistant","content":"a","audio":null}])").whole);
}

TEST(PromptText, HasALimit) {
  const std::string huge(3 * PromptTextReader::kMostText, 'x');
  const Text text = TextOf({.prompt = '"' + huge + '"'});
  EXPECT_FALSE(text.whole);
  EXPECT_EQ(text.text.size(), PromptTextReader::kMostText);
  std::string many = "[";
  while (many.size() < 2 * PromptTextReader::kMostRead) {
    many += R"({"id":"0123456789abcdef0123456789abcdef"},)";
  }
  many += "{}]";
  const Text ids = TextOf({.messages = many});
  EXPECT_FALSE(ids.whole) << "what is not rendered is not read without end either";
  const std::string deep = std::string(500, '[') + std::string(500, ']');
  EXPECT_FALSE(TextOf({.messages = deep}).whole);
}

TEST(PromptText, OfInvalidValuesIsWhatCouldBeRead) {
  for (const char* value : {"[", "[{", R"([{"a)", R"([{"a":)", R"([{"role":"user")", "[}", "{]",
                            "\x01", "[\xff]", R"([{"id":[{]}])", R"(["\ud800"])", R"(["\)",
                            R"(["\u12)", R"(["\ud800\u)", R"([{"type":{"a":"b"}}])",
                            R"([{"id":)"
                            "\xff"}) {
    TextOf({.messages = value});
  }
  EXPECT_FALSE(TextOf({.messages = R"([{"role":"user","content":"\ud800"}])"}).whole);
}

}  // namespace
}  // namespace fathom
