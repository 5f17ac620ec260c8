#include "text/chat/message_tools.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/json_pieces.h"

namespace fathom {
namespace {

// A schema without a type is one of an object.
Json SchemaOf(Json schema) {
  const bool typed = schema.Find("type") != nullptr;
  auto members = std::get<Json::Object>(std::move(schema).Take());
  if (!typed) members.emplace_back("type", TextJson("object"));
  return ObjectJson(std::move(members));
}

// Tools that run at Anthropic: SGLang leaves them out.
bool IsServerTool(std::string_view type) {
  constexpr std::string_view kFamilies[] = {"web_search_", "computer_", "bash_", "text_editor_"};
  return std::ranges::any_of(kFamilies,
                             [&](std::string_view family) { return type.starts_with(family); });
}

// The member, taken out: schemas are most of what a request of an agent has besides its messages,
// and are not copied. Of a name that is there twice the last counts.
Json TakeFrom(Json::Object& object, std::string_view name) {
  Json out;
  for (auto& [key, value] : object) {
    if (key == name) out = std::move(value);
  }
  return out;
}

Result<Json> ChatTool(Json tool, ChatDialect dialect) {
  const Json* const schema = tool.Find("input_schema");
  if (schema == nullptr || schema->object() == nullptr) {
    return Fail(Blame::kCaller, "a tool has no input_schema");
  }
  auto members = std::get<Json::Object>(std::move(tool).Take());
  Json name = TakeFrom(members, "name");
  if (name.string() == nullptr) name = TextJson("");
  Json strict = TakeFrom(members, "strict");
  Json::Object function;
  function.reserve(4);
  function.emplace_back("name", std::move(name));
  function.emplace_back("description", TakeFrom(members, "description"));
  function.emplace_back("parameters", SchemaOf(TakeFrom(members, "input_schema")));
  if (dialect == ChatDialect::kSglang) {
    if (function[1].second.is_null()) function[1].second = TextJson("");
    if (strict.is_null()) strict = Json(Json::Value(false));
  }
  if (!strict.is_null()) function.emplace_back("strict", std::move(strict));
  Json::Object out;
  out.reserve(3);
  out.emplace_back("type", TextJson("function"));
  out.emplace_back("function", ObjectJson(std::move(function)));
  Json later = TakeFrom(members, "defer_loading");
  if (!later.is_null() && dialect != ChatDialect::kTrtllm) {
    out.emplace_back("defer_loading", std::move(later));
  }
  return ObjectJson(std::move(out));
}

using NamedTools = std::vector<std::pair<std::string, Json>>;

// Blocks in messages of the system add and remove tools: what counts is the list at the end.
Result<void> ChangeTools(const Json& block, NamedTools& tools, std::vector<std::string>& removed) {
  const bool adds = TextIn(block, "type") == "tool_addition";
  const Json* const change = block.Find("tool");
  if (change == nullptr) return Fail(Blame::kCaller, "a change of tools names no tool");
  const Json* const definition = change->Find("definition");
  const bool by_value = TextIn(*change, "type") == "tool_definition";
  if (by_value && (!adds || definition == nullptr)) {
    return Fail(Blame::kCaller, "a change of tools has no tool");
  }
  const std::string name(by_value ? TextIn(*definition, "name") : TextIn(*change, "name"));
  const auto found = std::ranges::find(tools, name, [](const auto& entry) { return entry.first; });
  if (by_value) {
    if (found != tools.end()) {
      found->second = *definition;
    } else {
      tools.emplace_back(name, *definition);
    }
  } else if (found == tools.end()) {
    return Fail(Blame::kCaller, "a change of tools names one that is not there");
  } else if (adds && found->second.object() != nullptr) {
    Json::Object at_once;
    for (const auto& [key, value] : *found->second.object()) {
      if (key != "defer_loading") at_once.emplace_back(key, value);
    }
    found->second = ObjectJson(std::move(at_once));
  }
  if (adds) {
    std::erase(removed, name);
  } else {
    removed.push_back(name);
  }
  return {};
}

bool IsToolChange(const Json& block) {
  const std::string_view type = TextIn(block, "type");
  return type == "tool_addition" || type == "tool_removal";
}

// The tools after all changes.
Result<Json::Array> ToolsAtTheEnd(Json::Array tools, const Json::Array& messages) {
  NamedTools named;
  std::vector<std::string> removed;
  constexpr size_t kMostToolChanges = 256;  // each looks through all tools
  size_t changes = 0;
  bool changed = false;
  for (const Json& message : messages) {
    const Json::Array* const blocks = ListIn(message, "content");
    if (blocks == nullptr) continue;
    for (const Json& block : *blocks) {
      if (!IsToolChange(block)) continue;
      if (++changes > kMostToolChanges) {
        return Fail(Blame::kCaller, "more than {} changes of tools", kMostToolChanges);
      }
      if (!std::exchange(changed, true)) {
        for (const Json& tool : tools) named.emplace_back(TextIn(tool, "name"), tool);
      }
      TRY_VOID(ChangeTools(block, named, removed));
    }
  }
  if (!changed) return tools;
  Json::Array out;
  for (auto& [name, tool] : named) {
    if (std::ranges::find(removed, name) == removed.end()) out.push_back(std::move(tool));
  }
  return out;
}

}  // namespace

bool ChangesTools(ChatDialect dialect) { return dialect == ChatDialect::kVllm; }

Result<std::optional<Json::Array>> ReadMessageTools(const ChatFields& request,
                                                    const Json::Array& messages,
                                                    ChatDialect dialect) {
  Json::Array tools;
  if (!request.tools.empty()) {
    TRY(tools, ReadRequestList(request.tools, "tools"));
  }
  bool given = !request.tools.empty();
  if (ChangesTools(dialect)) {
    TRY(tools, ToolsAtTheEnd(std::move(tools), messages));
    given = given || !tools.empty();
  }
  if (!given) return std::nullopt;
  Json::Array converted;
  converted.reserve(tools.size());
  for (Json& tool : tools) {
    if (dialect == ChatDialect::kSglang && IsServerTool(TextIn(tool, "type"))) continue;
    TRY(Json chat_tool, ChatTool(std::move(tool), dialect));
    converted.push_back(std::move(chat_tool));
  }
  if (converted.empty() && dialect != ChatDialect::kVllm) return std::nullopt;
  return converted;
}

}  // namespace fathom
