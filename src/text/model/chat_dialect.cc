#include "text/model/chat_dialect.h"

#include <initializer_list>
#include <utility>

#include "base/check.h"

namespace fathom {
namespace {

// Null counts as missing.
const Json* MemberIn(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member != nullptr && !member->is_null() ? member : nullptr;
}

void Copy(const Json& from, std::string_view name, TemplateDict& out) {
  if (const Json* const member = MemberIn(from, name)) {
    out.emplace_back(name, TemplateValue::Of(*member));
  }
}

void CopyOrNone(const Json& from, std::initializer_list<std::string_view> names,
                TemplateDict& out) {
  for (const std::string_view name : names) {
    const Json* const member = MemberIn(from, name);
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

// Clients send arguments as a text that has JSON in it; templates get what that is. What is none
// becomes `fallback`.
TemplateValue ArgumentsOf(const Json& function, TemplateValue fallback) {
  const Json* const arguments = MemberIn(function, "arguments");
  if (arguments == nullptr) return TemplateDict();
  if (arguments->string() == nullptr) return TemplateValue::Of(*arguments);
  const auto parsed = Json::Parse(*arguments->string());
  if (parsed && parsed->object() != nullptr) return TemplateValue::Of(*parsed);
  return fallback.is_undefined() ? TemplateValue(*arguments->string()) : fallback;
}

const Json* FunctionIn(const Json& object) {
  const Json* const function = object.Find("function");
  return function != nullptr && function->object() != nullptr ? function : nullptr;
}

// vLLM and TensorRT-LLM: id, function (arguments, name), type.
TemplateValue OpenAiCall(const Json& call, const TemplateValue& bad_arguments) {
  const Json* const function = FunctionIn(call);
  if (function == nullptr) return TemplateValue::Of(call);
  TemplateDict inner;
  inner.emplace_back("arguments", ArgumentsOf(*function, bad_arguments));
  CopyRest(*function, inner);
  TemplateDict out;
  Copy(call, "id", out);
  out.emplace_back("function", TemplateValue(std::move(inner)));
  CopyRest(call, out);
  return out;
}

TemplateValue SglangCall(const Json& call) {
  const Json* const function = FunctionIn(call);
  if (function == nullptr) return TemplateValue::Of(call);
  TemplateDict out;
  CopyOrNone(call, {"id", "index"}, out);
  const Json* const type = MemberIn(call, "type");
  out.emplace_back("type", type != nullptr ? TemplateValue::Of(*type) : TemplateValue("function"));
  TemplateDict inner;
  CopyOrNone(*function, {"name"}, inner);
  inner.emplace_back("arguments", MemberIn(*function, "arguments") != nullptr
                                      ? ArgumentsOf(*function, TemplateDict())
                                      : TemplateValue(nullptr));
  out.emplace_back("function", TemplateValue(std::move(inner)));
  return out;
}

template <class Call>
void AddCalls(const Json& message, TemplateDict& out, bool even_none, Call call) {
  const Json* const calls = MemberIn(message, "tool_calls");
  if (calls == nullptr || calls->array() == nullptr) return;
  if (calls->array()->empty() && !even_none) return;
  TemplateList list;
  for (const Json& one : *calls->array()) list.push_back(call(one));
  out.emplace_back("tool_calls", TemplateValue(std::move(list)));
}

// transformers shows what the model thought under two names, whichever it came by.
void AddThoughts(TemplateDict& out) {
  const TemplateValue* const thoughts = FindMember(out, "reasoning_content");
  if (thoughts != nullptr) out.emplace_back("thinking", TemplateValue(*thoughts));
}

const Json* ReasoningIn(const Json& message, std::string_view first, std::string_view second) {
  const Json* const reasoning = MemberIn(message, first);
  return reasoning != nullptr ? reasoning : MemberIn(message, second);
}

void AddVllmMembers(const Json& message, std::string_view role, TemplateDict& out) {
  if (role == "assistant") {
    AddCalls(message, out, false,
             [](const Json& call) { return OpenAiCall(call, TemplateDict()); });
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
}

void AddSglangMembers(const Json& message, std::string_view role, TemplateDict& out) {
  if (role == "user") return;
  for (const std::string_view name : {"tool_call_id", "name", "reasoning_content"}) {
    Copy(message, name, out);
  }
  AddCalls(message, out, true, SglangCall);
  Copy(message, "tools", out);
  AddThoughts(out);
}

void AddTrtllmMembers(const Json& message, std::string_view role, TemplateDict& out) {
  out.emplace_back("media", TemplateValue(TemplateList()));
  if (role == "assistant") {
    if (const Json* const reasoning = ReasoningIn(message, "reasoning", "reasoning_content")) {
      out.emplace_back("reasoning_content", TemplateValue::Of(*reasoning));
    }
    AddCalls(message, out, true,
             [](const Json& call) { return OpenAiCall(call, TemplateValue()); });
  }
  if (role == "tool") Copy(message, "tool_call_id", out);
  if (role == "system") Copy(message, "tools", out);
  AddThoughts(out);
}

TemplateValue ToolOf(const Json& tool, TemplateDict function) {
  const Json* const type = MemberIn(tool, "type");
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
  return ToolOf(tool, std::move(inner));
}

TemplateValue SglangTool(const Json& tool) {
  const Json* const function = FunctionIn(tool);
  if (function == nullptr) return TemplateValue::Of(tool);
  TemplateDict inner;
  CopyOrNone(*function, {"description", "name", "parameters"}, inner);
  const Json* const strict = MemberIn(*function, "strict");
  inner.emplace_back("strict", strict != nullptr ? TemplateValue::Of(*strict) : false);
  TemplateDict out = *ToolOf(tool, std::move(inner)).dict();
  out.emplace_back("defer_loading", TemplateValue(nullptr));
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
