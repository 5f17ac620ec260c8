#include "text/chat/chat_dialect.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <span>
#include <utility>

#include "base/check.h"
#include "codec/json_as_python.h"
#include "text/chat/json_pieces.h"

namespace fathom {
namespace {

void Copy(const Json& from, std::string_view name, TemplateDict& out) {
  if (const Json* const member = GivenIn(from, name)) {
    out.emplace_back(name, TemplateValue::Of(*member));
  }
}

void CopyOrNone(const Json& from, std::initializer_list<std::string_view> names,
                TemplateDict& out) {
  for (const std::string_view name : names) {
    const Json* const member = GivenIn(from, name);
    out.emplace_back(name, member != nullptr ? TemplateValue::Of(*member) : TemplateValue(nullptr));
  }
}

// What `out` has not got yet.
void CopyRest(const Json& from, TemplateDict& out) {
  const TemplateDict there = out;
  const TemplateValue all = TemplateValue::Of(from);  // no key twice
  for (const auto& [name, value] : *all.dict()) {
    if (FindMember(there, name) == nullptr) out.emplace_back(name, value);
  }
}

std::unexpected<Error> BadArguments() {
  return Fail(Blame::kCaller, "the arguments of a tool call are not a JSON object");
}

// Clients send arguments as a text that has JSON in it; templates get what that is to Python. What
// is none becomes `fallback`, or stays the text that it is.
Result<TemplateValue> ArgumentsOf(const Json& function, const TemplateValue& fallback) {
  const Json* const arguments = GivenIn(function, "arguments");
  if (arguments == nullptr) return TemplateDict();
  if (arguments->string() == nullptr) return TemplateValue::Of(*arguments);
  const auto parsed = JsonAsPython(*arguments->string());
  if (parsed && parsed->object() != nullptr) return TemplateValue::Of(*parsed);
  if (!parsed && parsed.error() != PythonJsonFault::kNotJson) return BadArguments();
  return fallback.is_undefined() ? TemplateValue(*arguments->string()) : fallback;
}

// SGLang's reader makes floating point of integers beyond 64 bits, and refuses what is infinite;
// the engine refuses the chat then.
Result<TemplateValue> SglangArguments(const Json& function) {
  const Json* const arguments = GivenIn(function, "arguments");
  if (arguments == nullptr) return TemplateValue(nullptr);
  if (arguments->string() == nullptr) return TemplateValue::Of(*arguments);
  const auto parsed = Json::ParseWithLargeNumbers(*arguments->string());
  if (!parsed || parsed->object() == nullptr) return BadArguments();
  return TemplateValue::Of(*parsed);
}

const Json* FunctionIn(const Json& object) {
  const Json* const function = object.Find("function");
  return function != nullptr && function->object() != nullptr ? function : nullptr;
}

// vLLM and TensorRT-LLM: id, function (arguments, name), type.
Result<TemplateValue> OpenAiCall(const Json& call, const TemplateValue& bad_arguments) {
  const Json* const function = FunctionIn(call);
  if (function == nullptr) return TemplateValue::Of(call);
  TemplateDict inner;
  TRY(TemplateValue arguments, ArgumentsOf(*function, bad_arguments));
  inner.emplace_back("arguments", std::move(arguments));
  CopyRest(*function, inner);
  TemplateDict out;
  Copy(call, "id", out);
  out.emplace_back("function", TemplateValue(std::move(inner)));
  CopyRest(call, out);
  return out;
}

Result<TemplateValue> SglangCall(const Json& call) {
  const Json* const function = FunctionIn(call);
  if (function == nullptr) return TemplateValue::Of(call);
  TemplateDict out;
  CopyOrNone(call, {"id", "index"}, out);
  const Json* const type = GivenIn(call, "type");
  out.emplace_back("type", type != nullptr ? TemplateValue::Of(*type) : TemplateValue("function"));
  TemplateDict inner;
  CopyOrNone(*function, {"name"}, inner);
  TRY(TemplateValue arguments, SglangArguments(*function));
  inner.emplace_back("arguments", std::move(arguments));
  out.emplace_back("function", TemplateValue(std::move(inner)));
  return out;
}

template <class Call>
Result<void> AddCalls(const Json& message, TemplateDict& out, bool even_none, Call call) {
  const Json* const calls = GivenIn(message, "tool_calls");
  if (calls == nullptr || calls->array() == nullptr) return {};
  if (calls->array()->empty() && !even_none) return {};
  TemplateList list;
  for (const Json& one : *calls->array()) {
    TRY(TemplateValue shown, call(one));
    list.push_back(std::move(shown));
  }
  out.emplace_back("tool_calls", TemplateValue(std::move(list)));
  return {};
}

// transformers shows what the model thought under two names, whichever it came by.
void AddThoughts(TemplateDict& out) {
  const TemplateValue* const thoughts = FindMember(out, "reasoning_content");
  if (thoughts != nullptr) out.emplace_back("thinking", TemplateValue(*thoughts));
}

const Json* ReasoningIn(const Json& message, std::string_view first, std::string_view second) {
  const Json* const reasoning = GivenIn(message, first);
  return reasoning != nullptr ? reasoning : GivenIn(message, second);
}

Result<void> AddVllmMembers(const Json& message, std::string_view role, TemplateDict& out) {
  if (role == "assistant") {
    TRY_VOID(AddCalls(message, out, false,
                      [](const Json& call) { return OpenAiCall(call, TemplateDict()); }));
    if (const Json* const reasoning = ReasoningIn(message, "reasoning", "reasoning_content")) {
      out.emplace_back("reasoning", TemplateValue::Of(*reasoning));
      out.emplace_back("reasoning_content", TemplateValue::Of(*reasoning));
    }
  }
  if (role == "tool") Copy(message, "tool_call_id", out);
  const Json* const name = message.Find("name");
  if (name != nullptr && name->string() != nullptr) Copy(message, "name", out);
  const Json* const task = message.Find("task");
  if (task != nullptr && task->string() != nullptr) Copy(message, "task", out);
  if (role == "developer") CopyOrNone(message, {"tools"}, out);
  AddThoughts(out);
  return {};
}

Result<void> AddSglangMembers(const Json& message, std::string_view role, TemplateDict& out) {
  if (role == "user") return {};
  for (const std::string_view name : {"tool_call_id", "name", "reasoning_content"}) {
    Copy(message, name, out);
  }
  TRY_VOID(AddCalls(message, out, true, SglangCall));
  Copy(message, "tools", out);
  AddThoughts(out);
  return {};
}

Result<void> AddTrtllmMembers(const Json& message, std::string_view role, TemplateDict& out) {
  out.emplace_back("media", TemplateValue(TemplateList()));
  if (role == "assistant") {
    if (const Json* const reasoning = ReasoningIn(message, "reasoning", "reasoning_content")) {
      out.emplace_back("reasoning_content", TemplateValue::Of(*reasoning));
    }
    TRY_VOID(AddCalls(message, out, true,
                      [](const Json& call) { return OpenAiCall(call, TemplateValue()); }));
  }
  if (role == "tool") Copy(message, "tool_call_id", out);
  if (role == "system") Copy(message, "tools", out);
  AddThoughts(out);
  return {};
}

TemplateValue ToolOf(const Json& tool, TemplateDict function) {
  const Json* const type = GivenIn(tool, "type");
  return TemplateDict{
      {"type", type != nullptr ? TemplateValue::Of(*type) : TemplateValue("function")},
      {"function", TemplateValue(std::move(function))}};
}

TemplateValue VllmTool(const Json& tool) {
  const Json* const function = FunctionIn(tool);
  if (function == nullptr) return TemplateValue::Of(tool);
  TemplateDict inner;
  CopyOrNone(*function, {"name", "description", "parameters"}, inner);
  Copy(*function, "strict", inner);
  const Json* const later = GivenIn(*function, "defer_loading");
  Copy(later != nullptr ? *function : tool, "defer_loading", inner);
  return ToolOf(tool, std::move(inner));
}

// The client's own order of what is known, then what is missing. "strict" is there only if it is
// set.
TemplateDict SglangFunction(const Json& function) {
  constexpr std::string_view kKnown[] = {"description", "name", "parameters", "strict",
                                         "defer_loading"};
  constexpr size_t kAlways = 3;
  TemplateDict out;
  for (const auto& [name, value] : *function.object()) {
    const auto* const known = std::ranges::find(kKnown, name);
    if (known == std::end(kKnown)) continue;
    if (value.is_null() && known - std::begin(kKnown) >= std::ssize(kKnown) - 2) continue;
    SetMember(out, name, TemplateValue::Of(value));
  }
  for (const std::string_view name : std::span(kKnown).first(kAlways)) {
    if (FindMember(out, name) == nullptr) out.emplace_back(name, TemplateValue(nullptr));
  }
  return out;
}

TemplateValue SglangTool(const Json& tool) {
  const Json* const function = FunctionIn(tool);
  if (function == nullptr) return TemplateValue::Of(tool);
  TemplateDict inner = SglangFunction(*function);
  const Json* const later = GivenIn(tool, "defer_loading");
  if (later != nullptr && FindMember(inner, "defer_loading") == nullptr) {
    inner.emplace_back("defer_loading", TemplateValue::Of(*later));
  }
  TemplateDict out = *ToolOf(tool, std::move(inner)).dict();
  CopyOrNone(tool, {"defer_loading"}, out);
  return out;
}

TemplateValue TrtllmTool(const Json& tool) {
  const Json* const function = FunctionIn(tool);
  if (function == nullptr) return TemplateValue::Of(tool);
  TemplateDict inner;
  CopyOrNone(*function, {"name", "description", "parameters", "strict"}, inner);
  return ToolOf(tool, std::move(inner));
}

constexpr ChatRules kVllmRules = {.separator = "\n",
                                  .joins_empty_texts = false,
                                  .plain_texts_only = false,
                                  .wraps_text = true,
                                  .joins_texts = false,
                                  .no_tools_if_none = false,
                                  .empty_tools_stay = true,
                                  .only_named_tool = false,
                                  .takes_generation_prompt = true,
                                  .drops_empty_kwargs = true,
                                  .kwargs_say_effort = false,
                                  .lowers_roles = false,
                                  .final_assistant_becomes_user = false,
                                  .folds_developer = true,
                                  .drops_billing_line = true,
                                  .thinking_switch = "enable_thinking",
                                  .add_members = AddVllmMembers,
                                  .tool = VllmTool};

constexpr ChatRules kSglangRules = {.separator = " ",
                                    .joins_empty_texts = true,
                                    .plain_texts_only = true,
                                    .wraps_text = false,
                                    .joins_texts = false,
                                    .no_tools_if_none = true,
                                    .empty_tools_stay = false,
                                    .only_named_tool = true,
                                    .takes_generation_prompt = false,
                                    .drops_empty_kwargs = false,
                                    .kwargs_say_effort = true,
                                    .lowers_roles = true,
                                    .final_assistant_becomes_user = true,
                                    .folds_developer = false,
                                    .drops_billing_line = false,
                                    .thinking_switch = "thinking",
                                    .add_members = AddSglangMembers,
                                    .tool = SglangTool};

constexpr ChatRules kTrtllmRules = {.separator = "\n",
                                    .joins_empty_texts = false,
                                    .plain_texts_only = false,
                                    .wraps_text = false,
                                    .joins_texts = true,
                                    .no_tools_if_none = false,
                                    .empty_tools_stay = true,
                                    .only_named_tool = false,
                                    .takes_generation_prompt = true,
                                    .drops_empty_kwargs = false,
                                    .kwargs_say_effort = false,
                                    .lowers_roles = false,
                                    .final_assistant_becomes_user = false,
                                    .folds_developer = false,
                                    .drops_billing_line = false,
                                    .thinking_switch = "",
                                    .add_members = AddTrtllmMembers,
                                    .tool = TrtllmTool};

}  // namespace

const ChatRules& RulesOf(ChatDialect dialect) {
  switch (dialect) {
    case ChatDialect::kVllm:
      return kVllmRules;
    case ChatDialect::kSglang:
      return kSglangRules;
    case ChatDialect::kTrtllm:
      return kTrtllmRules;
  }
  CHECK(false);
}

}  // namespace fathom
