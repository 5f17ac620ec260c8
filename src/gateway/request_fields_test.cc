#include "gateway/request_fields.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(RequestFields, ReadsModelAndStreamWhereverTheyStand) {
  const auto fields = ReadRequestFields(
      R"( {"messages":[{"role":"user","content":"\"model\":\"wrong\""}],"stream" : true ,)"
      R"("nested":{"model":"wrong","stream":false},"model":"meta/llama-3"} )");
  ASSERT_TRUE(fields) << fields.error().what;
  EXPECT_EQ(fields->model, "meta/llama-3");
  EXPECT_TRUE(fields->stream);
}

TEST(RequestFields, AreEmptyWhereTheRequestNamesNone) {
  const auto fields = ReadRequestFields("{}");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->model, "");
  EXPECT_FALSE(fields->stream);
}

TEST(RequestFields, SeeThroughEscapesInKeysAndValues) {
  const auto fields = ReadRequestFields(R"({"m\u006fdel":"a\u0062\/\"c","str\u0065am":true})");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->model, "ab/\"c");
  EXPECT_TRUE(fields->stream);
}

TEST(RequestFields, TakeTheLastOfSeveral) {
  const auto fields =
      ReadRequestFields(R"({"model":"a","stream":true,"m\u006fdel":"b","stream":false})");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->model, "b");
  EXPECT_FALSE(fields->stream);
}

TEST(RequestFields, TakeOnlyTrueForAStream) {
  for (const char* value : {"null", "1", "\"true\"", "{}", "[true]", "false"}) {
    const auto fields = ReadRequestFields(std::string(R"({"stream":)") + value + "}");
    ASSERT_TRUE(fields) << value;
    EXPECT_FALSE(fields->stream) << value;
  }
}

TEST(RequestFields, RefuseAModelThatIsNoText) {
  for (const char* value : {"7", "[]", "{}", "true", R"("\ud800")"}) {
    const auto fields = ReadRequestFields(std::string(R"({"model":)") + value + "}");
    ASSERT_FALSE(fields) << value;
    EXPECT_EQ(fields.error().blame, Blame::kCaller);
  }
}

TEST(RequestFields, TakeANullModelForNone) {
  const auto fields = ReadRequestFields(R"({"model":"a","model":null})");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->model, "");
}

TEST(RequestFields, KeepWhatThePromptIsMadeOfAsTheClientWroteIt) {
  const std::string body =
      R"({"model":"m","messages":[ {"role":"user","content":"a\u0062"} ],"tools":[{"a" : 1}],)"
      R"("chat_template":"{{x}}","chat_template_kwargs":{"thinking": false},)"
      R"("add_generation_prompt":false,"continue_final_message":true,)"
      R"("add_special_tokens":true,"mm_processor_kwargs":{"n":1},"media_io_kwargs":{"video":{}},)"
      R"("documents":[{}],"reasoning_effort":"low","tool_choice":"none","input_ids":[1],)"
      R"("prompt_token_ids":[2],"echo":true,)"
      R"("prompt":[1, 2],"cache_salt":"tenant","seed":7})";
  const auto fields = ReadRequestFields(body);
  ASSERT_TRUE(fields);
  const PromptFields& parts = fields->parts;
  EXPECT_EQ(parts.prompt, "[1, 2]");
  EXPECT_EQ(parts.messages, R"([ {"role":"user","content":"a\u0062"} ])");
  EXPECT_EQ(parts.tools, R"([{"a" : 1}])");
  EXPECT_EQ(parts.chat_template, R"("{{x}}")");
  EXPECT_EQ(parts.chat_template_kwargs, R"({"thinking": false})");
  EXPECT_EQ(parts.add_generation_prompt, "false");
  EXPECT_EQ(parts.continue_final_message, "true");
  EXPECT_EQ(parts.add_special_tokens, "true");
  EXPECT_EQ(parts.mm_processor_kwargs, R"({"n":1})");
  EXPECT_EQ(parts.media_io_kwargs, R"({"video":{}})");
  EXPECT_EQ(parts.documents, "[{}]");
  EXPECT_EQ(parts.reasoning_effort, R"("low")");
  EXPECT_EQ(parts.tool_choice, R"("none")");
  EXPECT_EQ(fields->cache_salt, R"("tenant")");
  EXPECT_EQ(fields->input_ids, "[1]");
  EXPECT_EQ(fields->prompt_token_ids, "[2]");
  EXPECT_TRUE(fields->echo);
  for (const PromptField& field : kPromptFields) {
    const std::string_view value = parts.*field.value;
    EXPECT_GT(value.data(), body.data()) << field.name;
    EXPECT_LE(value.data() + value.size(), body.data() + body.size()) << field.name;
  }
}

TEST(RequestFields, TakeTheLastOfSeveralPartsAndNullForNone) {
  const auto fields =
      ReadRequestFields(R"({"prompt":"a","prompt":"b","tools":[1],"tools":null,"cache_salt":null,)"
                        R"("mess\u0061ges":[]})");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->parts.prompt, R"("b")");
  EXPECT_EQ(fields->parts.tools, "");
  EXPECT_EQ(fields->cache_salt, "");
  EXPECT_EQ(fields->parts.messages, "[]");
}

TEST(RequestFields, RefuseABodyThatIsNotOneJsonObject) {
  for (const char* body :
       {"", " ", "null", "[]", "\"{}\"", "{", "{}{}", "{} x", R"({"a":})", R"({"model":"m",})",
        R"({'model':'m'})", R"({"a":01})", "{\"a\":\"\n\"}"}) {
    const auto fields = ReadRequestFields(body);
    ASSERT_FALSE(fields) << body;
    EXPECT_EQ(fields.error().blame, Blame::kCaller);
  }
}

TEST(RequestFields, KeepsTheLastStreamOptionsAsTheyStandAlsoNull) {
  const auto read = [](std::string_view body) {
    return std::string(ReadRequestFields(body)->stream_options);
  };
  EXPECT_EQ(read(R"({"stream":true})"), "");
  EXPECT_EQ(read(R"({"stream_options":null})"), "null");
  EXPECT_EQ(read(R"({"stream_options":null,"stream\u005foptions": {"a":1} })"), R"({"a":1})");
}

}  // namespace
}  // namespace fathom
