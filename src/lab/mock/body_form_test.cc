#include "lab/mock/body_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lab/mock/request_limits.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kContext = 2048;

// The engine's answer; empty: it accepts the request.
std::string RefusalOf(MockedEngine engine, MockRoute route, std::string_view body) {
  const auto members = ReadMembers(engine, route, body);
  if (!members) return members.error().body;
  if (const auto refused = CheckSettings(engine, route, *members)) {
    return RefusalAnswer(engine, route, *refused).body;
  }
  if (const auto refused = CheckForm(engine, route, *members, body)) return refused->body;
  if (const auto refused = CheckLimits(engine, route, *members, kContext)) {
    return RefusalAnswer(engine, route, *refused).body;
  }
  return {};
}

std::string VllmRefusal(MockRoute route, std::string_view body) {
  return RefusalOf(MockedEngine::kVllm, route, body);
}
std::string TextRefusal(std::string_view members) {
  return VllmRefusal(MockRoute::kCompletions, "{\"prompt\":[1,2]," + std::string(members) + "}");
}
std::string ChatRefusal(std::string_view members) {
  return VllmRefusal(MockRoute::kChat, R"({"messages":[{"role":"user","content":"a"}],)" +
                                           std::string(members) + "}");
}

TEST(IsJsonType, KnowsOneTypeWithOrWithoutParameters) {
  for (const char* type : {"application/json", "Application/JSON", "application/json;charset=x"}) {
    EXPECT_TRUE(IsJsonType(type)) << type;
  }
  for (const char* type : {"", "text/plain", "application/json ;a=b", "application/problem+json"}) {
    EXPECT_FALSE(IsJsonType(type)) << type;
  }
}

TEST(BodyForm, TellsABodyThatIsNoObjectInVllmsWords) {
  EXPECT_EQ(VllmRefusal(MockRoute::kCompletions, "{"),
            "{\"error\":{\"message\":\"1 validation error:\\n  {'type': 'json_invalid', 'loc': "
            "'body.1', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': "
            "'Expecting property name enclosed in double quotes'}}\",\"type\":\"Bad Request\","
            "\"param\":\"body.1\",\"code\":400}}");
  EXPECT_THAT(VllmRefusal(MockRoute::kChat, ""),
              HasSubstr("'loc': 'body', 'msg': 'Field required'"));
  EXPECT_THAT(VllmRefusal(MockRoute::kChat, "[1]"),
              HasSubstr("'type': 'model_attributes_type', 'loc': 'body'"));
}

TEST(BodyForm, HoldsMembersToTheirTypes) {
  struct Case {
    const char* members;
    const char* refusal;  // null: accepted
  };
  const Case cases[] = {
      {R"("max_tokens":5)", nullptr},
      {R"("max_tokens":"5")", nullptr},
      {R"("max_tokens":2.0)", nullptr},
      {R"("max_tokens":true)", nullptr},
      {R"("max_tokens":"a")", "'type': 'int_parsing', 'loc': 'body.max_tokens'"},
      {R"("max_tokens":1.5)", "'type': 'int_from_float'"},
      {R"("max_tokens":1e400)", "'type': 'finite_number'"},
      {R"("n":null)", "'type': 'int_type', 'loc': 'body.n'"},
      {R"("seed":99999999999999999999)", "'type': 'less_than_equal'"},
      {R"("temperature":"x")", "'type': 'float_parsing'"},
      {R"("temperature":{})", "'type': 'float_type'"},
      {R"("stream":"yes")", nullptr},
      {R"("stream":2)", "'type': 'bool_parsing'"},
      {R"("stream":[])", "'type': 'bool_type'"},
      {R"("user":7)", "'type': 'string_type'"},
      {R"("stop":[1,2])", "3 validation errors"},
      {R"("kv_transfer_params":"x")", "'type': 'dict_type'"},
      {R"("stop_token_ids":["a"])", "'loc': 'body.stop_token_ids.0'"},
      {R"("no_such_member":1)", nullptr},
      {R"("m\u0061x_tokens":"a")", "'loc': 'body.max_tokens'"},
  };
  for (const Case& one : cases) {
    if (one.refusal == nullptr) {
      EXPECT_EQ(TextRefusal(one.members), "") << one.members;
    } else {
      EXPECT_THAT(TextRefusal(one.members), HasSubstr(one.refusal)) << one.members;
    }
  }
}

TEST(BodyForm, WantsWhatIsRequired) {
  EXPECT_THAT(VllmRefusal(MockRoute::kChat, R"({"model":"m"})"),
              HasSubstr("'loc': 'body.messages'"));
  EXPECT_THAT(VllmRefusal(MockRoute::kCompletions, R"({"model":"m"})"),
              HasSubstr("Either prompt or prompt_embeds must be provided and non-empty."));
  EXPECT_THAT(VllmRefusal(MockRoute::kMessages, "{}"), HasSubstr("3 validation errors"));
  EXPECT_THAT(VllmRefusal(MockRoute::kTokenize, "{}"), HasSubstr("2 validation errors"));
  EXPECT_THAT(VllmRefusal(MockRoute::kDetokenize, "{}"), HasSubstr("'loc': 'body.tokens'"));
}

TEST(BodyForm, LooksIntoMessagesAndTools) {
  const auto chat = [](std::string_view messages) {
    return VllmRefusal(MockRoute::kChat, "{\"messages\":" + std::string(messages) + "}");
  };
  EXPECT_EQ(chat(R"([{"role":"assistant","content":null}])"), "");
  EXPECT_THAT(chat(R"([{"role":"user","content":null}])"), HasSubstr("19 validation errors"));
  EXPECT_THAT(chat(R"([{"role":"user","content":5}])"), HasSubstr("22 validation errors"));
  EXPECT_THAT(chat(R"([{"content":"a"}])"), HasSubstr("11 validation errors"));
  EXPECT_THAT(chat(R"(["a"])"), HasSubstr("8 validation errors"));
  EXPECT_THAT(chat("[]"), HasSubstr("Cannot apply chat template to an empty conversation."));
  EXPECT_THAT(ChatRefusal(R"("tools":[{"type":"function"}])"),
              HasSubstr("'loc': 'body.tools.0.function'"));
  EXPECT_THAT(ChatRefusal(R"("tools":[])"), HasSubstr("`tools` must not be an empty array."));
  EXPECT_THAT(ChatRefusal(R"("tool_choice":"auto")"), HasSubstr("`tools` must be set."));
}

TEST(RequestLimits, RefusesValuesOutOfRangeInVllmsWords) {
  struct Case {
    const char* members;
    const char* refusal;
  };
  const Case cases[] = {
      {R"("max_tokens":0)",
       "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)"},
      {R"("max_tokens":2049)",
       "max_tokens=2049 cannot be greater than max_model_len=2048. Please request fewer output "
       "tokens. (parameter=max_tokens, value=2049)"},
      {R"("temperature":-1)",
       "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)"},
      {R"("temperature":2.5)", "temperature must be in [0, 2], got 2.5."},
      {R"("top_p":0)", "top_p must be in (0, 1], got 0.0."},
      {R"("top_k":-2)", "top_k must be 0 (disable), or at least 1, got -2."},
      {R"("n":0)", "n must be at least 1, got 0."},
      {R"("n":2,"temperature":0)", "n must be 1 when using greedy sampling, got 2."},
      {R"("min_tokens":5,"max_tokens":1)",
       "min_tokens must be less than or equal to max_tokens=1, got 5."},
      {R"("stop":["a",""])", "stop cannot contain an empty string."},
      {R"("cache_salt":"")", "must be a non-empty string if provided."},
      {R"("stream_options":{"include_usage":true})",
       "Stream options can only be defined when `stream=True`."},
  };
  for (const Case& one : cases) EXPECT_THAT(TextRefusal(one.members), HasSubstr(one.refusal));
  EXPECT_EQ(TextRefusal(R"("max_tokens":2048,"temperature":2,"top_p":1,"top_k":-1,"n":3)"), "");
}

TEST(RequestLimits, RefusesValuesOutOfRangeInSglangsWords) {
  const auto sglang = [](std::string_view members) {
    return RefusalOf(MockedEngine::kSglang, MockRoute::kCompletions,
                     "{\"prompt\":\"a\"," + std::string(members) + "}");
  };
  EXPECT_EQ(sglang(R"("temperature":-1)"),
            R"({"object":"error","message":"temperature must be a non-negative finite number, got )"
            R"(-1.0.","type":"BadRequest","code":400})");
  EXPECT_THAT(sglang(R"("max_tokens":-1)"), HasSubstr("max_new_tokens must be at least 0, got -1"));
  EXPECT_EQ(sglang(R"("max_tokens":0)"), "");
  EXPECT_THAT(RefusalOf(MockedEngine::kSglang, MockRoute::kMessages, R"({"model":"m"})"),
              HasSubstr(R"({"type":"error","error":{"type":"invalid_request_error","message":)"
                        R"("messages: Field required; max_tokens: Field required"})"));
}

TEST(BodyForm, RefusesMembersThatTensorRtLlmDoesNotKnow) {
  const auto trtllm = [](std::string_view body) {
    return RefusalOf(MockedEngine::kTrtllm, MockRoute::kCompletions, body);
  };
  EXPECT_EQ(trtllm(R"({"model":"m","prompt":[1],"max_tokens":2,"mock_stall_after":1})"), "");
  EXPECT_EQ(trtllm(R"({"model":"m","prompt":"a","no_such_member":true})"),
            "{\"error\":\"1 validation error:\\n  {'type': 'extra_forbidden', 'loc': ('body', "
            "'no_such_member'), 'msg': 'Extra inputs are not permitted', 'input': True}\"}");
  EXPECT_THAT(trtllm(R"({"prompt":"a"})"), HasSubstr("'loc': ('body', 'model')"));
}

}  // namespace
}  // namespace fathom
