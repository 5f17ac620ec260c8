// Reads members of Kubernetes objects, any of which may be missing, null or of another type.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "codec/json.h"

namespace fathom {

// The value below these keys; null if there is none.
inline const Json* KubeAt(const Json& object, std::initializer_list<std::string_view> keys) {
  const Json* at = &object;
  for (const std::string_view key : keys) {
    at = at->Find(key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

inline std::string_view KubeText(const Json& object, std::initializer_list<std::string_view> keys) {
  const Json* const found = KubeAt(object, keys);
  const std::string* const text = found == nullptr ? nullptr : found->string();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

// Empty if there is no such list.
inline const Json::Array& KubeArray(const Json& object,
                                    std::initializer_list<std::string_view> keys) {
  static const Json::Array none;
  const Json* const found = KubeAt(object, keys);
  const Json::Array* const list = found == nullptr ? nullptr : found->array();
  return list == nullptr ? none : *list;
}

inline const Json::Object& KubeMap(const Json& object,
                                   std::initializer_list<std::string_view> keys) {
  static const Json::Object none;
  const Json* const found = KubeAt(object, keys);
  const Json::Object* const map = found == nullptr ? nullptr : found->object();
  return map == nullptr ? none : *map;
}

inline std::optional<uint16_t> KubePort(const Json* value) {
  const auto number = value == nullptr ? std::nullopt : value->unsigned_integer();
  if (!number || *number == 0 || *number > 65535) return std::nullopt;
  return static_cast<uint16_t>(*number);
}

}  // namespace fathom
