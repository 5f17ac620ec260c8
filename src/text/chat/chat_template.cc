#include "text/chat/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "codec/json.h"
#include "text/chat/json_pieces.h"
#include "text/chat/messages_request.h"
#include "text/chat/request_values.h"
#include "text/chat/responses_request.h"
#include "text/jinja/text_strip.h"

namespace fathom {
namespace {

// Marks the end of a message that shall be continued. A noncharacter, and a space that shows
// whether the template has trimmed the message.
constexpr std::string_view kEndMark = "\xef\xb7\x92 ";  // U+FDD2

// A few words in; whatever takes more than this is no template for chats.
constexpr RenderLimits kProbeLimits = {.output = size_t{1} << 20, .steps = 100'000};

// To vLLM what is null or "auto" is as good as not said.
void AddKwargs(const Json::Object& kwargs, const ChatRules& rules, TemplateDict& globals) {
  for (const auto& [name, value] : kwargs) {
    const bool automatic = value.string() != nullptr && *value.string() == "auto";
    if (rules.drops_empty_kwargs && (value.is_null() || automatic)) continue;
    SetMember(globals, name, TemplateValue::Of(value));
  }
}

// How hard to think, and with it whether to think at all, unless the request says that itself.
void AddEffort(const ChatSource& chat, const ChatRules& rules, TemplateDict& globals) {
  if (rules.thinking_switch.empty()) return;
  // SGLang takes it from either place, and from the template's own arguments first.
  const bool inside = rules.kwargs_say_effort && FindMember(globals, "reasoning_effort") != nullptr;
  const bool given = !chat.reasoning_effort.is_null();
  if (!inside && given) {
    SetMember(globals, "reasoning_effort", TemplateValue::Of(chat.reasoning_effort));
  }
  const TemplateValue* const effort = FindMember(globals, "reasoning_effort");
  if (effort == nullptr || (!inside && !given) || !chat.effort_is_switch) return;
  const bool thinks = effort->text() == nullptr || *effort->text() != "none";
  for (const std::string_view name : {std::string_view("enable_thinking"), rules.thinking_switch}) {
    if (FindMember(globals, name) == nullptr) globals.emplace_back(name, thinks);
  }
}

// The names that a template can use, but for the messages.
TemplateDict GlobalsOf(const ChatSource& chat, const ChatTemplate::Occasion& occasion) {
  const ChatRules& rules = RulesOf(occasion.dialect);
  TemplateDict globals;
  if (occasion.roles != nullptr) globals = *occasion.roles;
  globals.emplace_back("documents", TemplateValue(nullptr));
  AddKwargs(chat.kwargs, rules, globals);
  if (rules.takes_generation_prompt && !chat.documents.is_null()) {
    SetMember(globals, "documents", TemplateValue::Of(chat.documents));
  }
  AddEffort(chat, rules, globals);
  const bool generates =
      !rules.takes_generation_prompt || chat.add_generation_prompt.value_or(true);
  SetMember(globals, "add_generation_prompt", generates);
  return globals;
}

RenderedChat Unknown(Inexact why, std::string problem) {
  return {.inexact = why, .problem = std::move(problem)};
}

// The last message, with a mark at its end; false if it has no text that could have one.
bool MarkEnd(TemplateList& messages) {
  TemplateDict message = *messages.back().dict();
  const TemplateValue content = *FindMember(message, "content");
  if (const std::string* const text = content.text()) {
    SetMember(message, "content", TemplateValue(*text + std::string(kEndMark)));
    messages.back() = TemplateValue(std::move(message));
    return true;
  }
  if (content.sequence() == nullptr || content.sequence()->items.empty()) return false;
  TemplateList parts = content.sequence()->items;
  TemplateDict last = *parts.back().dict();
  const TemplateValue* const text = FindMember(last, "text");
  if (text == nullptr) return false;
  SetMember(last, "text", TemplateValue(*text->text() + std::string(kEndMark)));
  parts.back() = TemplateValue(std::move(last));
  SetMember(message, "content", TemplateValue(std::move(parts)));
  messages.back() = TemplateValue(std::move(message));
  return true;
}

// Ends the prompt where the last message does. False: the mark is not there.
bool CutAtEnd(std::string& text) {
  const std::string_view mark = kEndMark.substr(0, kEndMark.size() - 1);
  const size_t at = text.rfind(mark);
  if (at == std::string::npos) return false;
  const bool trimmed = !std::string_view(text).substr(at).starts_with(kEndMark);
  text.resize(at);
  if (trimmed) text.resize(StripRight(text).size());
  return true;
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

Result<ChatTemplate> ChatTemplate::Parse(std::string_view source) {
  TRY(Template parsed, Template::Parse(source));
  ChatTemplate out(std::move(parsed));
  out.LookAt(source);
  return out;
}

// What engines find out about a template at their start.
void ChatTemplate::LookAt(std::string_view source) {
  for (const std::string_view word : {"image", "audio", "video", "vision"}) {
    media_ = media_ || source.contains(word);
  }
  developer_ = source.contains("'developer'") || source.contains("\"developer\"");
  tools_ = source.contains("tool") || source.contains("think");
  for (const std::string_view name : {"enable_thinking", "thinking"}) {
    if (thinking_argument_.empty() && source.contains(name)) thinking_argument_ = name;
  }
  constexpr std::string_view kSecond = "a second word of the system";
  const auto message = [](std::string_view role, std::string_view text) {
    return TemplateValue(
        TemplateDict{{"role", TemplateValue(role)}, {"content", TemplateValue(text)}});
  };
  // Without the tokens that begin a prompt, as the engines do it: a template that cannot go without
  // them counts as one that refuses.
  const TemplateDict probe = {
      {"messages", TemplateValue(TemplateList{message("system", "t"), message("user", "t"),
                                              message("system", kSecond), message("user", "t")})},
      {"add_generation_prompt", TemplateValue(false)}};
  const auto rendered = template_.Render(probe, {.limits = kProbeLimits});
  refuses_inline_system_ = !rendered;
  drops_inline_system_ = !rendered || !rendered->contains(kSecond);
}

// Whether contents that are lists stay lists. SGLang has a rule of its own.
bool ChatTemplate::WantsParts(ChatDialect dialect) const {
  return template_.loops_over_content() || (media_ && dialect == ChatDialect::kSglang);
}

bool ChatTemplate::HearsNoEffort(const Occasion& occasion) const {
  int8_t hears = hears_no_effort_->load(std::memory_order_relaxed);
  if (hears < 0) {
    hears = TryNoEffort(occasion) ? 1 : 0;
    hears_no_effort_->store(hears, std::memory_order_relaxed);
  }
  return hears == 1;
}

// Whether "none" asks for something else than any effort does.
bool ChatTemplate::TryNoEffort(const Occasion& occasion) const {
  ChatSource probe;
  probe.messages = {ObjectJson({{"role", TextJson("user")}, {"content", TextJson("Hi")}})};
  const auto rendered = [&](std::string_view effort) {
    probe.reasoning_effort = TextJson(effort);
    return RenderSource(probe, occasion);
  };
  const RenderedChat none = rendered("none");
  if (none.inexact) return false;
  return std::ranges::none_of(
      std::to_array<std::string_view>({"low", "medium", "high", "xhigh", "max"}),
      [&](std::string_view effort) {
        const RenderedChat other = rendered(effort);
        return !other.inexact && other.text == none.text;
      });
}

EngineHabits ChatTemplate::HabitsOf(const ChatFields& chat, const Occasion& occasion) const {
  EngineHabits habits;
  const bool sglang = occasion.dialect == ChatDialect::kSglang;
  habits.takes_inline_system = sglang ? !drops_inline_system_ : !refuses_inline_system_;
  habits.thinking_argument = thinking_argument_;
  // A model that neither thinks nor uses tools is started without a parser for its thoughts.
  const std::string_view guess = tools_ ? "qwen3" : "";
  habits.thoughts = MarksOfParser(occasion.reasoning_parser.value_or(guess));
  if (chat.thinking.contains("disabled") && occasion.dialect == ChatDialect::kVllm) {
    habits.hears_no_effort = HearsNoEffort(occasion);
  }
  return habits;
}

Result<ChatSource> ChatTemplate::Read(const ChatFields& chat, const Occasion& occasion) const {
  switch (chat.api) {
    case PromptApi::kChat:
      return ReadChat(chat);
    case PromptApi::kMessages:
      return ReadMessages(chat, occasion.dialect, HabitsOf(chat, occasion));
    case PromptApi::kResponses:
      return ReadResponses(chat, occasion.dialect, HabitsOf(chat, occasion));
  }
  CHECK(false);
}

RenderedChat ChatTemplate::Render(const ChatFields& chat, const Occasion& occasion) const {
  if (auto few = CheckValues(chat); !few) {
    return Unknown(Inexact::kTooLong, std::move(few).error().what);
  }
  auto source = Read(chat, occasion);
  if (!source) return Unknown(Inexact::kNotAPrompt, std::move(source).error().what);
  return RenderSource(*source, occasion);
}

RenderedChat ChatTemplate::RenderSource(const ChatSource& chat, const Occasion& occasion) const {
  const ChatPreparation how{.dialect = occasion.dialect,
                            .content_in_parts = WantsParts(occasion.dialect),
                            .knows_developer = developer_,
                            .filter = occasion.filter};
  auto prepared = PrepareChat(chat, how);
  if (!prepared) return Unknown(Inexact::kNotAPrompt, std::move(prepared).error().what);
  TemplateDict globals = GlobalsOf(chat, occasion);
  const bool continues =
      chat.continue_final_message && RulesOf(occasion.dialect).takes_generation_prompt;
  if (continues && chat.add_generation_prompt.value_or(false)) {
    return Unknown(Inexact::kNotAPrompt,
                   "continue_final_message and add_generation_prompt cannot be combined");
  }
  if (continues) SetMember(globals, "add_generation_prompt", false);
  SetMember(globals, "tools", prepared->tools);
  return RenderPrepared(*std::move(prepared), std::move(globals), continues,
                        {.limits = occasion.limits, .now = occasion.now});
}

RenderedChat ChatTemplate::RenderPrepared(PreparedChat prepared, TemplateDict globals,
                                          bool continues, const RenderOptions& options) const {
  if (continues && !MarkEnd(prepared.messages)) {
    return Unknown(Inexact::kNotAPrompt, "the final message has no text to continue");
  }
  const auto render = [&](TemplateList messages) {
    SetMember(globals, "messages", TemplateValue(std::move(messages)));
    return template_.Render(globals, options);
  };
  auto text = render(std::move(prepared.messages));
  if (!text) {
    using Cause = RenderFailure::Cause;
    const Cause cause = text.error().cause;
    RenderedChat unknown =
        Unknown(cause == Cause::kRefused ? Inexact::kTemplateRefused : Inexact::kTemplateFailed,
                std::move(text).error().what);
    unknown.overdrawn = cause == Cause::kOverdrawn;
    return unknown;
  }
  RenderedChat rendered{.text = *std::move(text) + prepared.beginning, .inexact = prepared.inexact};
  if (!rendered.inexact) {
    if (!continues || CutAtEnd(rendered.text)) return rendered;
    return Unknown(Inexact::kTemplateFailed, "the template leaves out the final message");
  }
  // A template may say other things before an image than before a text.
  size_t exact = std::min(rendered.text.find(kUnknownMark), rendered.text.size());
  if (exact == rendered.text.size()) exact = 0;
  if (prepared.as_is) {
    const auto other = render(*std::move(prepared.as_is));
    exact = other ? std::min(exact, CommonPrefix(rendered.text, *other)) : 0;
  }
  rendered.text.resize(exact);
  return rendered;
}

}  // namespace fathom
