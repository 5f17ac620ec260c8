#include "text/chat/chat_template.h"

#include <gtest/gtest.h>

#include "text/chat/request_values.h"

namespace fathom {
namespace {

// Prints everything that it sees.
constexpr std::string_view kMirror =
    "{% for message in messages %}{{ message | tojson }}\n{% endfor %}";
constexpr std::string_view kPlain =
    "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";
constexpr std::string_view kParts =
    "{% for message in messages %}[{{ message.role }}]{% if message.content is string %}"
    "{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'text' %}"
    "{{ part.text }}{% else %}<{{ part.type }}>{% endif %}{% endfor %}{% endif %}{% endfor %}";

RenderedChat Render(std::string_view source, const ChatFields& chat,
                    ChatDialect dialect = ChatDialect::kVllm) {
  const auto parsed = ChatTemplate::Parse(source);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().what);
  if (!parsed) return {};
  return parsed->Render(chat, {.dialect = dialect});
}

std::string Text(std::string_view source, const ChatFields& chat,
                 ChatDialect dialect = ChatDialect::kVllm) {
  const RenderedChat rendered = Render(source, chat, dialect);
  EXPECT_FALSE(rendered.inexact) << rendered.problem;
  return rendered.text;
}

TEST(ChatTemplate, RendersAChatAndAsksForTheAnswer) {
  const ChatFields chat{.messages = R"([{"role":"user","content":"hi"}])"};
  EXPECT_EQ(Text(kPlain, chat), "[user]hi[assistant]");
  ChatFields silent = chat;
  silent.add_generation_prompt = "false";
  EXPECT_EQ(Text(kPlain, silent), "[user]hi");
  EXPECT_EQ(Text(kPlain, silent, ChatDialect::kSglang), "[user]hi[assistant]")
      << "SGLang has no such field";
}

TEST(ChatTemplate, JoinsTextsAsEachEngineDoes) {
  const ChatFields chat{.messages = R"([{"role":"user","content":[{"type":"text","text":"a"},)"
                                    R"({"type":"text","text":""},{"type":"text","text":"b"}]}])"};
  EXPECT_EQ(Text(kPlain, chat), "[user]a\nb[assistant]");
  EXPECT_EQ(Text(kPlain, chat, ChatDialect::kTrtllm), "[user]a\nb[assistant]");
  EXPECT_EQ(Text(kPlain, chat, ChatDialect::kSglang), "[user]a  b[assistant]");
}

TEST(ChatTemplate, MakesSystemMessagesOfADevelopersWhereTheTemplateDoesNotKnowTheRole) {
  const ChatFields one{.messages = R"([{"role":"developer","content":"d","tools":[]},)"
                                   R"({"role":"user","content":"u"}])"};
  EXPECT_EQ(Text(kPlain, one), "[system]d[user]u[assistant]");
  EXPECT_EQ(Text(kMirror, one),
            "{\"role\": \"system\", \"content\": \"d\"}\n"
            "{\"role\": \"user\", \"content\": \"u\"}\n");
  EXPECT_EQ(Text(kPlain, one, ChatDialect::kSglang), "[developer]d[user]u[assistant]");
  EXPECT_EQ(Text(std::string(kPlain) + "{# 'developer' #}", one), "[developer]d[user]u[assistant]");
}

TEST(ChatTemplate, MergesAllSystemMessagesOnceADeveloperSpeaks) {
  const ChatFields several{.messages =
                               R"([{"role":"system","content":"s","name":"n"},)"
                               R"({"role":"user","content":"u"},)"
                               R"({"role":"developer","content":[{"type":"text","text":"a"},)"
                               R"({"type":"text","text":"b"}]},)"
                               R"({"role":"developer","content":""}])"};
  EXPECT_EQ(Text(kPlain, several), "[system]s\n\na\nb[user]u[assistant]");
  EXPECT_EQ(Text(kParts, several), "[system]s\n\na\nb[user]u");
  const ChatFields without{.messages = R"([{"role":"system","content":"s"},)"
                                       R"({"role":"user","content":"u"},)"
                                       R"({"role":"system","content":"t"}])"};
  EXPECT_EQ(Text(kPlain, without), "[system]s[user]u[system]t[assistant]");
}

TEST(ChatTemplate, LeavesOutTheBillingLineOfASystemTextAsVllmDoes) {
  const ChatFields chat{.messages =
                            R"([{"role":"system","content":"x-anthropic-billing-header: a\nb"},)"
                            R"({"role":"user","content":"x-anthropic-billing-header: c\nd"}])"};
  EXPECT_EQ(Text(kPlain, chat), "[system]b[user]x-anthropic-billing-header: c\nd[assistant]");
  EXPECT_EQ(Text(kPlain, chat, ChatDialect::kSglang),
            "[system]x-anthropic-billing-header: a\nb[user]x-anthropic-billing-header: c\nd"
            "[assistant]");
}

TEST(ChatTemplate, MakesPartsOfATextOnlyWhereTheEngineDoes) {
  const ChatFields chat{.messages = R"([{"role":"user","content":"a"}])"};
  constexpr std::string_view kKind =
      "{% for message in messages %}{{ message.content is string }}"
      "{% for part in message.content %}{% endfor %}{% endfor %}";
  EXPECT_EQ(Text(kKind, chat), "False");
  EXPECT_EQ(Text(kKind, chat, ChatDialect::kSglang), "True");
  EXPECT_EQ(Text(kKind, chat, ChatDialect::kTrtllm), "True");
}

TEST(ChatTemplate, KeepsTheMembersOfAMessageThatTheEngineKeeps) {
  const ChatFields chat{
      .messages = R"([{"name":"n","x":1,"content":null,"role":"assistant","reasoning":"r",)"
                  R"("tool_calls":[{"id":"1","type":"function","function":{"name":"f",)"
                  R"("arguments":"{\"a\": 1}"}}]},{"role":"user","content":"u","name":"m"}])"};
  EXPECT_EQ(Text(kMirror, chat),
            R"({"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": )"
            R"({"arguments": {"a": 1}, "name": "f"}, "type": "function"}], "reasoning": "r", )"
            R"("reasoning_content": "r", "name": "n", "thinking": "r"})"
            "\n"
            R"({"role": "user", "content": "u", "name": "m"})"
            "\n");
  EXPECT_EQ(Text(kMirror, chat, ChatDialect::kSglang),
            R"({"role": "assistant", "content": "", "name": "n", "tool_calls": [{"id": "1", )"
            R"("index": null, "type": "function", "function": {"name": "f", "arguments": )"
            R"({"a": 1}}}]})"
            "\n"
            R"({"role": "user", "content": "u"})"
            "\n");
  EXPECT_EQ(Text(kMirror, chat, ChatDialect::kTrtllm),
            R"({"role": "assistant", "content": "", "media": [], "reasoning_content": "r", )"
            R"("tool_calls": [{"id": "1", "function": {"arguments": {"a": 1}, "name": "f"}, )"
            R"("type": "function"}], "thinking": "r"})"
            "\n"
            R"({"role": "user", "content": "u", "media": []})"
            "\n");
}

TEST(ChatTemplate, ShowsToolsInTheOrderOfTheEngine) {
  const ChatFields chat{
      .messages = R"([{"role":"user","content":"u"}])",
      .tools = R"([{"function":{"parameters":{"z":1,"a":2},"name":"f"},"type":"function"}])"};
  constexpr std::string_view kTools = "{{ tools | tojson }}";
  EXPECT_EQ(Text(kTools, chat),
            R"([{"type": "function", "function": {"name": "f", "description": null, )"
            R"("parameters": {"z": 1, "a": 2}}}])");
  EXPECT_EQ(Text(kTools, chat, ChatDialect::kSglang),
            R"([{"type": "function", "function": {"parameters": {"z": 1, "a": 2}, "name": "f", )"
            R"("description": null}, "defer_loading": null}])");
  EXPECT_EQ(Text(kTools, chat, ChatDialect::kTrtllm),
            R"([{"type": "function", "function": {"name": "f", "description": null, )"
            R"("parameters": {"z": 1, "a": 2}, "strict": null}}])");
}

TEST(ChatTemplate, LeavesOutThoughtsInPartsWhereTheEngineDoes) {
  const ChatFields chat{.messages =
                            R"([{"role":"assistant","content":[{"type":"thinking","thinking":"t"},)"
                            R"({"type":"text","text":"a"}]},{"role":"user","content":"u"}])"};
  EXPECT_EQ(Text(kPlain, chat), "[assistant]t\na[user]u[assistant]");
  EXPECT_EQ(Text(kPlain, chat, ChatDialect::kSglang), "[assistant]a[user]u[assistant]");
}

TEST(ChatTemplate, TakesToolsAwayWhereTheEngineDoes) {
  ChatFields chat{.messages = R"([{"role":"user","content":"u"}])",
                  .tools = R"([{"type":"function","function":{"name":"f"}},)"
                           R"({"type":"function","function":{"name":"g"}}])",
                  .tool_choice = R"("none")"};
  constexpr std::string_view kNames =
      "{% if tools %}{% for tool in tools %}{{ tool.function.name }}{% endfor %}{% endif %}";
  EXPECT_EQ(Text(kNames, chat), "fg");
  EXPECT_EQ(Text(kNames, chat, ChatDialect::kSglang), "");
  chat.tool_choice = R"({"type":"function","function":{"name":"g"}})";
  EXPECT_EQ(Text(kNames, chat), "fg");
  EXPECT_EQ(Text(kNames, chat, ChatDialect::kSglang), "g");
}

TEST(ChatTemplate, ContinuesTheFinalMessage) {
  ChatFields chat{.messages = R"([{"role":"user","content":"u"},)"
                              R"({"role":"assistant","content":"so far "}])",
                  .add_generation_prompt = "false",
                  .continue_final_message = "true"};
  constexpr std::string_view kTrims =
      "{% for message in messages %}[{{ message.role }}]{{ message.content | trim }}.{% endfor %}";
  constexpr std::string_view kKeeps =
      "{% for message in messages %}[{{ message.role }}]{{ message.content }}.{% endfor %}";
  EXPECT_EQ(Text(kKeeps, chat), "[user]u.[assistant]so far ");
  EXPECT_EQ(Text(kTrims, chat), "[user]u.[assistant]so far");
  EXPECT_EQ(Text(kPlain, chat, ChatDialect::kSglang), "[user]u[assistant]so far ");
  chat.add_generation_prompt = "true";
  EXPECT_EQ(Render(kKeeps, chat).inexact, Inexact::kNotAPrompt);
}

TEST(ChatTemplate, TurnsAFinalMessageOfTheAssistantIntoTheUsersForSglang) {
  const ChatFields chat{.messages = R"([{"role":"assistant","content":"a"}])"};
  EXPECT_EQ(Text(kPlain, chat, ChatDialect::kSglang), "[user]a[assistant]");
  EXPECT_EQ(Text(kPlain, chat), "[assistant]a[assistant]");
}

TEST(ChatTemplate, GivesTheTemplateWhatTheRequestSays) {
  ChatFields chat{.messages = R"([{"role":"user","content":"u"}])",
                  .documents = R"([{"title":"t"}])",
                  .chat_template_kwargs = R"({"a":1,"empty":null,"auto":"auto"})",
                  .reasoning_effort = R"("low")"};
  constexpr std::string_view kSaid =
      "{{ a }} {{ empty is defined }} {{ auto is defined }} {{ documents[0].title }} "
      "{{ reasoning_effort }} {{ enable_thinking }}";
  EXPECT_EQ(Text(kSaid, chat), "1 False False t low True");
  chat.reasoning_effort = R"("none")";
  EXPECT_EQ(Text("{{ enable_thinking }}{{ thinking }}", chat, ChatDialect::kSglang), "FalseFalse");
  chat.chat_template_kwargs = R"({"enable_thinking":true})";
  EXPECT_EQ(Text("{{ enable_thinking }}", chat), "True");
}

TEST(ChatTemplate, IsExactUpToTheFirstPartThatIsNoText) {
  const ChatFields chat{
      .messages = R"([{"role":"system","content":"s"},{"role":"user","content":[)"
                  R"({"type":"text","text":"look: "},{"type":"image_url","image_url":{}},)"
                  R"({"type":"text","text":"what?"}]}])"};
  const RenderedChat in_parts = Render(kParts, chat);
  EXPECT_EQ(in_parts.inexact, Inexact::kImage);
  EXPECT_EQ(in_parts.text, "[system]s[user]look: ");
  const RenderedChat joined = Render(kPlain, chat);
  EXPECT_EQ(joined.inexact, Inexact::kImage);
  EXPECT_EQ(joined.text, "[system]s[user]") << "engines put images before the text";
}

TEST(ChatTemplate, IsExactUpToWhereAnImageMakesADifference) {
  const ChatFields chat{.messages = R"([{"role":"system","content":"s"},{"role":"user",)"
                                    R"("content":[{"type":"image_url","image_url":{}}]}])"};
  constexpr std::string_view kLooksAhead =
      "{% set ns = namespace(images=false) %}{% for message in messages %}"
      "{% for part in message.content %}{% if part.type == 'image' %}{% set ns.images = true %}"
      "{% endif %}{% endfor %}{% endfor %}start,{% if ns.images %}with{% else %}without{% endif %}"
      " images{% for message in messages %}{% for part in message.content %}{{ part.text }}"
      "{% endfor %}{% endfor %}";
  EXPECT_EQ(Render(kLooksAhead, chat).text, "start,with");
}

TEST(ChatTemplate, NamesEveryKindOfPart) {
  const auto why = [](std::string_view type) {
    const std::string messages =
        R"([{"role":"user","content":[{"type":")" + std::string(type) + R"("}]}])";
    return Render(kPlain, {.messages = messages}).inexact;
  };
  EXPECT_EQ(why("input_audio"), Inexact::kAudio);
  EXPECT_EQ(why("video_url"), Inexact::kVideo);
  EXPECT_EQ(why("file"), Inexact::kFile);
  EXPECT_EQ(why("hologram"), Inexact::kUnknownPart);
}

TEST(ChatTemplate, SaysWhoRefusedAChat) {
  const ChatFields chat{.messages = R"([{"role":"user","content":"u"}])"};
  const RenderedChat refused = Render("{{ raise_exception('roles must alternate') }}", chat);
  EXPECT_EQ(refused.inexact, Inexact::kTemplateRefused);
  EXPECT_NE(refused.problem.find("roles must alternate"), std::string::npos);
  EXPECT_EQ(Render("{{ messages.a.b }}", chat).inexact, Inexact::kTemplateFailed);
}

TEST(ChatTemplate, RefusesWhatIsNoChat) {
  for (const char* const messages :
       {"[]", "{}", "[1]", R"([{"content":"a"}])", R"([{"role":1}])",
        R"([{"role":"user","content":1}])", R"([{"role":"user","content":[1]}])",
        R"([{"role":"user","content":[{"type":"text","text":1}]}])"}) {
    const RenderedChat rendered = Render(kPlain, {.messages = messages});
    EXPECT_EQ(rendered.inexact, Inexact::kNotAPrompt) << messages;
    EXPECT_TRUE(rendered.text.empty()) << messages;
    EXPECT_FALSE(rendered.problem.empty()) << messages;
  }
}

TEST(ChatTemplate, TakesTheLastOfTwoMembersOfOneName) {
  EXPECT_EQ(Text(kPlain, {.messages = R"([{"role":"user","content":"a","content":"b"}])"}),
            "[user]b[assistant]");
}

TEST(ChatTemplate, LowersRolesForSglang) {
  const ChatFields chat{.messages = R"([{"role":"USER","content":"a"}])"};
  EXPECT_EQ(Text(kPlain, chat), "[USER]a[assistant]");
  EXPECT_EQ(Text(kPlain, chat, ChatDialect::kSglang), "[user]a[assistant]");
}

TEST(ChatTemplate, LetsTheTemplatesArgumentsSayHowHardToThinkForSglang) {
  const ChatFields chat{.messages = R"([{"role":"user","content":"u"}])",
                        .chat_template_kwargs = R"({"reasoning_effort":"none"})",
                        .reasoning_effort = R"("low")"};
  constexpr std::string_view kSaid = "{{ reasoning_effort }} {{ enable_thinking }}";
  EXPECT_EQ(Text(kSaid, chat), "low True");
  EXPECT_EQ(Text(kSaid, chat, ChatDialect::kSglang), "none False");
}

TEST(ChatTemplate, RefusesMoreArgumentsThanAnyTemplateHas) {
  std::string kwargs = "{";
  for (int i = 0; i < 1000; ++i) kwargs += "\"a" + std::to_string(i) + "\":1,";
  kwargs += "\"b\":1}";
  const RenderedChat rendered = Render(
      kPlain, {.messages = R"([{"role":"user","content":"u"}])", .chat_template_kwargs = kwargs});
  EXPECT_EQ(rendered.inexact, Inexact::kNotAPrompt);
}

// A chat whose last message has a call with these arguments, which are a text.
std::string CallWith(std::string_view arguments) {
  return R"([{"role":"user","content":"u"},{"role":"assistant","tool_calls":[{"type":"function",)"
         R"("function":{"name":"f","arguments":")" +
         std::string(arguments) + R"("}}]},{"role":"user","content":"v"}])";
}

constexpr std::string_view kArguments =
    "{% for m in messages if m.tool_calls %}{{ m.tool_calls[0].function.arguments | tojson }}"
    "{% endfor %}";

TEST(ChatTemplate, ShowsNumbersInArgumentsAsPythonReadsThem) {
  const std::string large =
      CallWith(R"({\"a\":18446744073709551616,\"b\":[-9223372036854775809,1E400,NaN,1e5,-0.0]})");
  EXPECT_EQ(Text(kArguments, {.messages = large}),
            R"({"a": 18446744073709551616, "b": [-9223372036854775809, Infinity, NaN, 100000.0, )"
            "-0.0]}");
  const std::string rounded = CallWith(R"({\"a\":18446744073709551616})");
  EXPECT_EQ(Text(kArguments, {.messages = rounded}, ChatDialect::kSglang),
            R"({"a": 1.8446744073709552e+19})");
}

TEST(ChatTemplate, IsUnknownWhereTheEngineWouldRefuseTheArguments) {
  for (const char* const arguments : {"{", "[1]", R"({\"a\":NaN})", R"({\"a\":1E400})"}) {
    const std::string messages = CallWith(arguments);
    const RenderedChat rendered = Render(kArguments, {.messages = messages}, ChatDialect::kSglang);
    EXPECT_EQ(rendered.inexact, Inexact::kNotAPrompt) << arguments;
  }
  const std::string no_json = CallWith("{");
  EXPECT_EQ(Text(kArguments, {.messages = no_json}), "{}") << "vLLM goes on without them";
  const std::string surrogate = CallWith(R"({\"a\":\"\\ud800\"})");
  EXPECT_EQ(Render(kArguments, {.messages = surrogate}).inexact, Inexact::kNotAPrompt);
}

TEST(ChatTemplate, ShowsLargeNumbersInToolsAndTemplateArguments) {
  const ChatFields chat{.messages = R"([{"role":"user","content":"u"}])",
                        .tools = R"([{"function":{"parameters":{"a":18446744073709551616}}}])",
                        .chat_template_kwargs = R"({"b":-9223372036854775809})"};
  EXPECT_EQ(Text("{{ tools[0].function.parameters.a }} {{ b | abs }} {{ b < 0 }}", chat),
            "18446744073709551616 9223372036854775809 True");
}
TEST(ChatTemplate, ThinkingIsTurnedOffWhereTheTemplateListens) {
  const auto rendered = [](std::string_view source) {
    const auto parsed = ChatTemplate::Parse(source);
    const ChatFields request{.api = PromptApi::kMessages,
                             .messages = R"([{"role":"user","content":"hi"}])",
                             .thinking = R"({"type":"disabled"})"};
    (void)parsed->Render(request, {});
    return parsed->Render(request, {}).text;  // the second time it is known
  };
  EXPECT_EQ(rendered("{{ reasoning_effort }}{{ enable_thinking }}"), "noneFalse");
  EXPECT_EQ(rendered("{% if reasoning_effort == 'high' %}!{% endif %}{{ messages | length }}"),
            "1");
  EXPECT_EQ(rendered("{{ 'deep' if enable_thinking else reasoning_effort }}"), "none");
  EXPECT_EQ(rendered("{{ '' if reasoning_effort == 'max' else '' }}{{ enable_thinking is defined }}"
                     "{{ reasoning_effort if messages[0].content == 'hi' }}"),
            "Truelow");
}

// Each of them would take fifty times its size.
TEST(ChatTemplate, DoesNotReadVeryManyValues) {
  const auto many = [](size_t count) {
    std::string list = "[0";
    for (size_t i = 1; i < count; ++i) list += ",0";
    return list + "]";
  };
  const auto render = [](PromptApi api, std::string_view tools, std::string_view arguments) {
    const std::string call = R"({"id":"1","type":"function","function":{"name":"f","arguments":")" +
                             std::string(arguments) + "\"}}";
    const std::string messages =
        R"([{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[)" + call + "]}]";
    ChatFields chat{.api = api, .tools = tools};
    if (api == PromptApi::kChat) {
      chat.messages = messages;
    } else if (api == PromptApi::kMessages) {
      chat.messages = R"([{"role":"user","content":"hi"}])";
    } else {
      chat.input = "\"hi\"";
    }
    return Render(kPlain, chat).inexact;
  };
  const std::string few = many(kMostRequestValues / 2);
  const std::string most = many(kMostRequestValues + 1);
  for (const PromptApi api : {PromptApi::kChat, PromptApi::kMessages, PromptApi::kResponses}) {
    EXPECT_EQ(render(api, most, "{}"), Inexact::kTooLong);
    EXPECT_NE(render(api, few, "{}"), Inexact::kTooLong);
  }
  // JSON within a text is read, too.
  EXPECT_EQ(render(PromptApi::kChat, "", R"({\"a\":)" + most + "}"), Inexact::kTooLong);
  EXPECT_EQ(render(PromptApi::kChat, "", R"({\"a\":)" + few + "}"), std::nullopt);
  // Prose is as long, and has few.
  const std::string prose =
      "[{\"role\":\"user\",\"content\":\"" + std::string(4 << 20, 'x') + "\"}]";
  EXPECT_EQ(Render(kPlain, {.messages = prose}).inexact, std::nullopt);
}

}  // namespace
}  // namespace fathom
