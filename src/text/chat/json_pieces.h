// Small pieces of JSON, for code that builds a chat from another API's request.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "codec/json.h"

namespace fathom {

inline Json TextJson(std::string_view text) { return Json(Json::Value(std::string(text))); }
inline Json ListJson(Json::Array items) { return Json(Json::Value(std::move(items))); }
inline Json ObjectJson(Json::Object members) { return Json(Json::Value(std::move(members))); }

inline Json TextPartJson(std::string_view text) {
  return ObjectJson({{"type", TextJson("text")}, {"text", TextJson(text)}});
}

// The member, if it is there and not null.
inline const Json* GivenIn(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member != nullptr && !member->is_null() ? member : nullptr;
}

// The member's text; empty if it has none.
inline std::string_view TextIn(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member != nullptr && member->string() != nullptr ? *member->string() : std::string_view();
}

inline const Json::Array* ListIn(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member != nullptr ? member->array() : nullptr;
}

// The member, in place of one that is there already.
inline void SetIn(Json::Object& object, std::string_view name, Json value) {
  for (auto& [key, old] : object) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  object.emplace_back(std::string(name), std::move(value));
}

// A call of a tool, as an assistant's message has it.
inline Json CallJson(std::string_view id, std::string_view name, Json arguments) {
  return ObjectJson(
      {{"id", TextJson(id)},
       {"type", TextJson("function")},
       {"function", ObjectJson({{"name", TextJson(name)}, {"arguments", std::move(arguments)}})}});
}

inline Json ToolMessage(std::string_view call, Json content) {
  return ObjectJson({{"role", TextJson("tool")},
                     {"tool_call_id", TextJson(call)},
                     {"content", std::move(content)}});
}

}  // namespace fathom
