#include "text/tokenizer/part_json.h"

namespace fathom {

Result<const Json*> PartMember(const Json& part, std::string_view key) {
  const Json* member = part.Find(key);
  if (member == nullptr) return Fail(Blame::kCaller, "'{}' is missing", key);
  return member;
}

Result<std::string> PartText(const Json& part, std::string_view key) {
  TRY(const Json* member, PartMember(part, key));
  if (member->string() == nullptr) return Fail(Blame::kCaller, "'{}' is not a text", key);
  return *member->string();
}

Result<std::string> PartType(const Json& part) { return PartText(part, "type"); }

Result<bool> PartFlag(const Json& part, std::string_view key, bool otherwise) {
  const Json* member = part.Find(key);
  if (member == nullptr || member->is_null()) return otherwise;
  if (member->boolean() == nullptr)
    return Fail(Blame::kCaller, "'{}' is neither true nor false", key);
  return *member->boolean();
}

Result<void> FlattenParts(const Json& part, std::string_view key, std::vector<const Json*>& out,
                          int depth) {
  if (part.is_null()) return {};
  if (depth > kMaxPartDepth) return Fail(Blame::kCaller, "Sequences are nested too deeply");
  TRY(const std::string type, PartType(part));
  if (type != "Sequence") {
    out.push_back(&part);
    return {};
  }
  TRY(const Json* members, PartMember(part, key));
  if (members->array() == nullptr) return Fail(Blame::kCaller, "'{}' is not a list", key);
  for (const Json& member : *members->array()) {
    TRY_VOID(FlattenParts(member, key, out, depth + 1));
  }
  return {};
}

}  // namespace fathom
