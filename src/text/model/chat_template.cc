#include "text/model/chat_template.h"

#include <algorithm>
#include <utility>

#include "codec/json.h"
#include "text/jinja/text_strip.h"

namespace fathom {
namespace {

// Marks the end of a message that shall be continued. A noncharacter, and a space that shows
// whether the template has trimmed the message.
constexpr std::string_view kEndMark = "\xef\xb7\x92 ";  // U+FDD2

bool IsTrue(std::string_view json) { return json == "true"; }

constexpr size_t kMostKwargs = 256;  // no template knows so many names

// To vLLM what is null or "auto" is as good as not said.
Result<void> AddKwargs(std::string_view text, const ChatRules& rules, TemplateDict& globals) {
  TRY(const Json kwargs, ReadRequestJson(text));
  if (kwargs.object() == nullptr || kwargs.object()->size() > kMostKwargs) {
    return Fail(Blame::kCaller, "'chat_template_kwargs' is not an object of at most {} members",
                kMostKwargs);
  }
  for (const auto& [name, value] : *kwargs.object()) {
    const bool automatic = value.string() != nullptr && *value.string() == "auto";
    if (rules.drops_empty_kwargs && (value.is_null() || automatic)) continue;
    SetMember(globals, name, TemplateValue::Of(value));
  }
  return {};
}

Result<void> AddValue(std::string_view name, std::string_view json, TemplateDict& globals) {
  if (json.empty()) return {};
  TRY(const Json value, ReadRequestJson(json));
  SetMember(globals, name, TemplateValue::Of(value));
  return {};
}

// How hard to think, and with it whether to think at all, unless the request says that itself.
Result<void> AddEffort(const ChatFields& chat, const ChatRules& rules, TemplateDict& globals) {
  if (rules.thinking_switch.empty()) return {};
  // SGLang takes it from either place, and from the template's own arguments first.
  const bool inside = rules.kwargs_say_effort && FindMember(globals, "reasoning_effort") != nullptr;
  if (!inside) TRY_VOID(AddValue("reasoning_effort", chat.reasoning_effort, globals));
  const TemplateValue* const effort = FindMember(globals, "reasoning_effort");
  if (effort == nullptr || (!inside && chat.reasoning_effort.empty())) return {};
  const bool thinks = effort->text() == nullptr || *effort->text() != "none";
  for (const std::string_view name : {std::string_view("enable_thinking"), rules.thinking_switch}) {
    if (FindMember(globals, name) == nullptr) globals.emplace_back(name, thinks);
  }
  return {};
}

// The names that a template can use, but for the messages.
Result<TemplateDict> GlobalsOf(const ChatFields& chat, const ChatTemplate::Occasion& occasion) {
  const ChatRules& rules = RulesOf(occasion.dialect);
  TemplateDict globals;
  if (occasion.roles != nullptr) globals = *occasion.roles;
  globals.emplace_back("documents", TemplateValue(nullptr));
  if (!chat.chat_template_kwargs.empty()) {
    TRY_VOID(AddKwargs(chat.chat_template_kwargs, rules, globals));
  }
  if (rules.takes_generation_prompt) TRY_VOID(AddValue("documents", chat.documents, globals));
  TRY_VOID(AddEffort(chat, rules, globals));
  const bool generates = !rules.takes_generation_prompt || chat.add_generation_prompt.empty() ||
                         IsTrue(chat.add_generation_prompt);
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
  bool media = false;
  for (const std::string_view word : {"image", "audio", "video", "vision"}) {
    media = media || source.contains(word);
  }
  const bool developer = source.contains("'developer'") || source.contains("\"developer\"");
  return ChatTemplate(std::move(parsed), media, developer);
}

// Whether contents that are lists stay lists. SGLang has a rule of its own.
bool ChatTemplate::WantsParts(ChatDialect dialect) const {
  return template_.loops_over_content() || (media_ && dialect == ChatDialect::kSglang);
}

RenderedChat ChatTemplate::Render(const ChatFields& chat, const Occasion& occasion) const {
  const ChatPreparation how{.dialect = occasion.dialect,
                            .content_in_parts = WantsParts(occasion.dialect),
                            .knows_developer = developer_,
                            .filter = occasion.filter};
  auto prepared = PrepareChat(chat, how);
  if (!prepared) return Unknown(Inexact::kNotAPrompt, std::move(prepared).error().what);
  auto globals = GlobalsOf(chat, occasion);
  if (!globals) return Unknown(Inexact::kNotAPrompt, std::move(globals).error().what);
  const bool continues =
      IsTrue(chat.continue_final_message) && RulesOf(occasion.dialect).takes_generation_prompt;
  if (continues && IsTrue(chat.add_generation_prompt)) {
    return Unknown(Inexact::kNotAPrompt,
                   "continue_final_message and add_generation_prompt cannot be combined");
  }
  if (continues) SetMember(*globals, "add_generation_prompt", false);
  SetMember(*globals, "tools", prepared->tools);
  return RenderPrepared(*std::move(prepared), *std::move(globals), continues,
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
