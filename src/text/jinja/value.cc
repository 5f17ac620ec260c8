#include "text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "text/jinja/object.h"

namespace fathom {
namespace {

// Above it a member is found by hash while a document is read: a repeated key costs no search.
constexpr size_t kFewMembers = 16;

const std::string kNumberKey = "\xffi";
const std::string kNoneKey = "\xffn";

uint32_t Deepest(const TemplateList& items) {
  uint32_t depth = 0;
  for (const TemplateValue& item : items) depth = std::max(depth, item.depth());
  return depth;
}

uint32_t Deepest(const TemplateDict& members) {
  uint32_t depth = 0;
  for (const auto& [key, value] : members) depth = std::max(depth, value.depth());
  return depth;
}

TemplateDict Members(const Json::Object& object) {
  TemplateDict members;
  members.reserve(object.size());
  std::unordered_map<std::string_view, size_t> places;
  const bool few = object.size() <= kFewMembers;
  for (const auto& [key, json] : object) {
    TemplateValue value = TemplateValue::Of(json);
    if (few) {
      SetMember(members, key, std::move(value));
      continue;
    }
    const auto [place, added] = places.try_emplace(key, members.size());
    if (added) {
      members.emplace_back(key, std::move(value));
    } else {
      members[place->second].second = std::move(value);
    }
  }
  return members;
}

struct Reader {
  TemplateValue operator()(std::nullptr_t) const { return nullptr; }
  TemplateValue operator()(const std::string& text) const { return text; }
  TemplateValue operator()(const Json::Array& array) const {
    TemplateList items;
    items.reserve(array.size());
    for (const Json& item : array) items.push_back(TemplateValue::Of(item));
    return items;
  }
  TemplateValue operator()(const Json::Object& object) const { return Members(object); }
  TemplateValue operator()(const Json::BigInteger& big) const {
    return TemplateValue(LargeInteger{big.digits});
  }
  TemplateValue operator()(auto scalar) const { return scalar; }
};

}  // namespace

TemplateValue::TemplateValue(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    value_ = static_cast<int64_t>(value);
  } else {
    value_ = std::make_shared<const LargeInteger>(std::to_string(value));
  }
}

TemplateValue::TemplateValue(std::string text)
    : value_(std::make_shared<const TemplateText>(std::move(text))) {}

TemplateValue TemplateValue::AsMarkup() && {
  if (!is_text() || is_markup()) return std::move(*this);
  value_ = std::make_shared<const TemplateText>(*text(), true);
  return std::move(*this);
}

TemplateValue::TemplateValue(TemplateList list, SequenceKind kind) {
  const uint32_t depth = 1 + Deepest(list);
  value_ = std::make_shared<const TemplateSequence>(std::move(list), kind, depth);
}

TemplateValue::TemplateValue(TemplateDict dict) {
  const uint32_t depth = 1 + Deepest(dict);
  value_ = std::make_shared<const TemplateMapping>(std::move(dict), depth);
}

TemplateValue TemplateValue::Of(const Json& json) { return std::visit(Reader{}, json.value()); }

uint32_t TemplateValue::depth() const {
  switch (kind()) {
    case Kind::kSequence:
      return sequence()->depth;
    case Kind::kDict:
      return std::get<std::shared_ptr<const TemplateMapping>>(value_)->depth;
    case Kind::kCallable:
      return 1 + callable()->receiver.depth();
    case Kind::kLoop:
      return 1 + loop()->items.depth();
    case Kind::kIterator:
      return 1 + iterator()->items.depth();
    default:
      return 0;
  }
}

std::optional<std::string> DictKey(const TemplateValue& value) {
  if (const std::string* const text = value.text()) return *text;
  if (const int64_t* const integer = value.integer()) return kNumberKey + std::to_string(*integer);
  if (const LargeInteger* const large = value.large_integer()) return kNumberKey + large->digits;
  if (value.is_none()) return kNoneKey;
  return std::nullopt;
}

bool IsTextKey(std::string_view key) { return key != kNoneKey && !key.starts_with(kNumberKey); }

TemplateValue KeyValue(std::string_view key) {
  if (key == kNoneKey) return nullptr;
  if (!key.starts_with(kNumberKey)) return key;
  const std::string digits(key.substr(kNumberKey.size()));
  int64_t number = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return end.ec == std::errc() ? TemplateValue(number) : TemplateValue(LargeInteger{digits});
}

const TemplateValue* FindMember(const TemplateDict& dict, std::string_view key) {
  for (const auto& [name, value] : dict) {
    if (name == key) return &value;
  }
  return nullptr;
}

void SetMember(TemplateDict& dict, std::string_view key, TemplateValue value) {
  const auto found = std::ranges::find(dict, key, &TemplateDict::value_type::first);
  if (found == dict.end()) {
    dict.emplace_back(key, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

}  // namespace fathom
