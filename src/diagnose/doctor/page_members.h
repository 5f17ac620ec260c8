// Members of a JSON object that a server wrote: what is missing, null or of another kind is
// nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/peer_text.h"
#include "codec/json.h"

namespace fathom {

inline const Json& MemberOf(const Json& object, std::string_view key) {
  static const Json kNothing;
  const Json* const found = object.Find(key);
  return found != nullptr ? *found : kNothing;
}

inline std::string TextOf(const Json& object, std::string_view key) {
  const std::string* const text = MemberOf(object, key).string();
  return text != nullptr ? Shown(*text, 1000) : std::string();
}

inline uint64_t CountOf(const Json& object, std::string_view key) {
  return MemberOf(object, key).unsigned_integer().value_or(0);
}

inline uint32_t SmallCountOf(const Json& object, std::string_view key) {
  const uint64_t count = CountOf(object, key);
  return count <= std::numeric_limits<uint32_t>::max() ? static_cast<uint32_t>(count) : 0;
}

inline std::optional<double> NumberOf(const Json& object, std::string_view key) {
  return MemberOf(object, key).number();
}

inline std::optional<bool> FlagOf(const Json& object, std::string_view key) {
  const bool* const flag = MemberOf(object, key).boolean();
  return flag != nullptr ? std::optional(*flag) : std::nullopt;
}

inline const Json::Array& ListOf(const Json& object, std::string_view key) {
  static const Json::Array kNothing;
  const Json::Array* const list = MemberOf(object, key).array();
  return list != nullptr ? *list : kNothing;
}

}  // namespace fathom
