#include "router/gateway/request_fields.h"

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

TEST(RequestFields, SeeHowTokensAreCountedInSamplingParams) {
  const auto otherwise = [](const std::string& body) {
    return ReadRequestFields(body)->counts_otherwise;
  };
  EXPECT_FALSE(otherwise(R"({"sampling_params":{"n":1,"max_tokens":4}})"));
  EXPECT_TRUE(otherwise(R"({"sampling_params":{"n":2}})"));
  EXPECT_TRUE(otherwise(R"({"sampling_params":{"prompt_logprobs":1}})"));
  EXPECT_TRUE(otherwise(R"({"return_logprob":true})"));
  EXPECT_FALSE(otherwise(R"({"sampling_params":[{"n":1}],"return_logprob":false})"));
  EXPECT_TRUE(ReadRequestFields(R"({"sampling_params":{"truncate_prompt_tokens":5}})")->truncate);
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
    ASSERT_TRUE(fields) << value;
    EXPECT_EQ(fields->model_problem, "'model' must be a string") << value;
    EXPECT_EQ(fields->model, "");
  }
}

TEST(RequestFields, RefuseAModelWhoseNameIsTooLong) {
  const auto with_name = [](const std::string& name) {
    const std::string body = R"({"model":")" + name + R"("})";
    return *ReadRequestFields(body);
  };
  const auto repeated = [](std::string_view text, size_t times) {
    std::string all;
    for (size_t i = 0; i < times; ++i) all += text;
    return all;
  };
  const std::string longest(kLongestModel, 'a');
  EXPECT_EQ(with_name(longest).model, longest);
  EXPECT_EQ(with_name(repeated("\\u0061", kLongestModel)).model, longest);
  for (const std::string& name : {longest + "a", repeated("\\u0061", kLongestModel + 1),
                                  repeated("\\u00e4", kLongestModel / 2 + 1)}) {
    const RequestFields fields = with_name(name);
    EXPECT_EQ(fields.model_problem, "'model' must have at most 4096 bytes") << name.size();
    EXPECT_EQ(fields.model, "");
  }
}

TEST(RequestFields, JudgeTheLastModel) {
  const auto fields = ReadRequestFields(R"({"model":7,"model":"a"})");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->model_problem, "");
  EXPECT_EQ(fields->model, "a");
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
      R"("prompt_token_ids":[2],"echo":true,"system":"s","thinking":{"type":"disabled"},)"
      R"("output_config":{},"input":"hi","instructions":"be brief","reasoning":{"effort":"low"},)"
      R"("previous_response_id":"resp_1",)"
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
  EXPECT_EQ(parts.system, R"("s")");
  EXPECT_EQ(parts.thinking, R"({"type":"disabled"})");
  EXPECT_EQ(parts.output_config, "{}");
  EXPECT_EQ(parts.input, R"("hi")");
  EXPECT_EQ(parts.instructions, R"("be brief")");
  EXPECT_EQ(parts.reasoning, R"({"effort":"low"})");
  EXPECT_EQ(parts.previous_response_id, R"("resp_1")");
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

std::string_view TransferField(std::string_view body) {
  const auto fields = ReadRequestFields(body);
  EXPECT_TRUE(fields) << body;
  return fields ? fields->transfer_field : "";
}

TEST(RequestFields, FindsMembersThatSteerTransfers) {
  EXPECT_EQ(TransferField(R"({"model":"m","kv_transfer_params":{"do_remote_prefill":true}})"),
            "kv_transfer_params");
  EXPECT_EQ(TransferField(R"({"disaggregated_params":{}})"), "disaggregated_params");
  EXPECT_EQ(TransferField(R"({"bootstrap_host":"10.0.0.1","stream":true})"), "bootstrap_host");
  EXPECT_EQ(TransferField(R"({"bootstrap_port":null})"), "bootstrap_port");
  EXPECT_EQ(TransferField(R"({"bootstrap_room":[1,2]})"), "bootstrap_room");
  EXPECT_EQ(TransferField(R"({"kv_transf\u0065r_params":1})"), "kv_transfer_params");
  EXPECT_EQ(TransferField(R"({"\u0062ootstrap_room":1})"), "bootstrap_");
  EXPECT_EQ(TransferField(R"({"kv_transfer_params":{},"kv_transfer_params":null})"),
            "kv_transfer_params")
      << "some engines take the first";
}

TEST(RequestFields, FindsThemWhereVllmTakesArgumentsFrom) {
  EXPECT_EQ(TransferField(R"({"vllm_xargs":{"kv_transfer_params":"x"}})"), "kv_transfer_params");
  EXPECT_EQ(TransferField(R"({"sampling_params":{"extra_args":{"kv_transfer_params":{}}}})"),
            "kv_transfer_params");
  EXPECT_EQ(TransferField(R"({"vllm_xargs":{"top_k":1},"n":1})"), "");
  EXPECT_EQ(TransferField(R"({"vllm_xargs":null,"sampling_params":[1],"extra_args":7})"), "");
}

TEST(RequestFields, LeavesOtherMembersAlone) {
  EXPECT_EQ(TransferField(R"({"kv_transfer_params":null,"disaggregated_params":null})"), "");
  EXPECT_EQ(TransferField(R"({"messages":[{"kv_transfer_params":1}],"bootstrap":1,"model":"m"})"),
            "");
}

}  // namespace
}  // namespace fathom
