#include "text/jinja/attribute.h"

#include "base/text.h"
#include "text/jinja/object.h"
#include "text/jinja/python_slice.h"
#include "text/jinja/python_text.h"
#include "text/jinja/syntax.h"

namespace fathom {
namespace {

TemplateValue BoundMethod(const TemplateValue& value, const Method& method) {
  auto callable = std::make_shared<TemplateCallable>();
  callable->method = &method;
  callable->receiver = value;
  return TemplateValue(std::shared_ptr<const TemplateCallable>(std::move(callable)));
}

bool IsHidden(const TemplateValue& value, const MethodName& name) {
  if (value.dict() != nullptr) return name.changes_dict;
  const TemplateSequence* list = value.sequence();
  return list != nullptr && list->kind == SequenceKind::kList && name.changes_list;
}

TemplateValue GroupAttribute(const TemplateValue& value, std::string_view name) {
  const TemplateSequence* sequence = value.sequence();
  if (sequence == nullptr || sequence->kind != SequenceKind::kGroup) return {};
  if (name == "grouper") return sequence->items[0];
  if (name == "list") return sequence->items[1];
  return {};
}

// What a dot finds that is no member.
TemplateValue Own(const TemplateValue& value, const MethodName& name) {
  if (const Method* method = name.For(value)) return BoundMethod(value, *method);
  const TemplateCallable* const callable = value.callable();
  const bool macro = callable != nullptr && callable->function != nullptr;
  if (macro && name.name == "name") return callable->function->name;
  return GroupAttribute(value, name.name);
}

}  // namespace

const TemplateValue* FindNamed(const TemplateValue& value, std::string_view name,
                               RenderBudget& budget) {
  const TemplateNamespace* name_space = value.name_space();
  const TemplateDict* dict = name_space != nullptr ? &name_space->attributes : value.dict();
  if (dict == nullptr) return nullptr;
  budget.Spend(dict->size() / 8);
  return FindMember(*dict, name);
}

Result<TemplateValue> GetAttribute(const TemplateValue& value, const MethodName& name,
                                   RenderBudget& budget) {
  if (value.is_undefined()) return Fail(Blame::kCaller, "'{}' of an undefined value", name.name);
  if (IsHidden(value, name)) return TemplateValue();
  if (TemplateValue own = Own(value, name); !own.is_undefined()) return own;
  const TemplateValue* member = FindNamed(value, name.name, budget);
  return member == nullptr ? TemplateValue() : *member;
}

Result<TemplateValue> GetItem(const TemplateValue& value, const TemplateValue& key,
                              RenderBudget& budget) {
  if (value.is_undefined()) return Fail(Blame::kCaller, "an item of an undefined value");
  if (const std::string* name = key.text()) return GetNamedItem(value, FindMethods(*name), budget);
  if (value.dict() != nullptr) {
    const std::optional<std::string> name = DictKey(key);
    const TemplateValue* const member = name ? FindNamed(value, *name, budget) : nullptr;
    return member == nullptr ? TemplateValue() : *member;
  }
  const bool* const boolean = key.boolean();
  if (key.integer() == nullptr && boolean == nullptr) return TemplateValue();
  const int64_t index = boolean == nullptr ? *key.integer() : *boolean ? 1 : 0;
  TemplateValue item = TakeIndex(value, index, budget);
  return value.is_markup() ? std::move(item).AsMarkup() : std::move(item);
}

Result<TemplateValue> GetNamedItem(const TemplateValue& value, const MethodName& key,
                                   RenderBudget& budget) {
  if (value.is_undefined()) return Fail(Blame::kCaller, "an item of an undefined value");
  if (const TemplateValue* member = FindNamed(value, key.name, budget)) return *member;
  return IsHidden(value, key) ? TemplateValue() : Own(value, key);
}

Result<AttributePath> AttributePath::Parse(const TemplateValue& attribute) {
  AttributePath path;
  if (attribute.is_none()) return path;
  const std::string* text = attribute.text();
  if (text == nullptr) {
    path.parts_.push_back(attribute);
    return path;
  }
  size_t begin = 0;
  while (begin <= text->size()) {
    const size_t end = std::min(text->find('.', begin), text->size());
    const std::string_view part = std::string_view(*text).substr(begin, end - begin);
    const auto number = ParseDecimal(part);
    path.parts_.push_back(number ? TemplateValue(*number) : TemplateValue(part));
    begin = end + 1;
  }
  return path;
}

Result<TemplateValue> AttributePath::Follow(const TemplateValue& from,
                                            const TemplateValue* fallback,
                                            RenderBudget& budget) const {
  TemplateValue value = from;
  for (const TemplateValue& part : parts_) {
    budget.Spend(1);
    TRY(value, GetItem(value, part, budget));
    if (value.is_undefined() && fallback != nullptr) value = *fallback;
  }
  return value;
}

}  // namespace fathom
