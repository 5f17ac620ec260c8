#include "text/jinja/method.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_text.h"

namespace fathom {
namespace {

Result<TemplateValue> Itself(const TemplateValue& receiver, const Arguments& arguments,
                             RenderBudget&) {
  TRY_VOID(BindNone(arguments));
  return receiver;
}

Result<TemplateValue> Index(const TemplateValue& receiver, const Arguments& arguments,
                            RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"value"}, 1));
  int64_t index = 0;
  for (const TemplateValue& item : receiver.sequence()->items) {
    if (!budget.Spend(1)) break;
    if (Equals(item, *bound[0], budget)) return index;
    ++index;
  }
  return Fail(Blame::kCaller, "a value that is not in the list");
}

Result<TemplateValue> Count(const TemplateValue& receiver, const Arguments& arguments,
                            RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"value"}, 1));
  int64_t count = 0;
  for (const TemplateValue& item : receiver.sequence()->items) {
    if (!budget.Spend(1)) break;
    if (Equals(item, *bound[0], budget)) ++count;
  }
  return count;
}

Result<TemplateValue> Get(const TemplateValue& receiver, const Arguments& arguments,
                          RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"key", "default"}, 1));
  budget.Spend(receiver.dict()->size() / 8);
  if (bound[0]->sequence() != nullptr || bound[0]->dict() != nullptr) {
    return Fail(Blame::kCaller, "{} is not a key", TypeName(*bound[0]));
  }
  const std::optional<std::string> key = DictKey(*bound[0]);
  const TemplateValue* found = key ? FindMember(*receiver.dict(), *key) : nullptr;
  if (found != nullptr) return *found;
  return bound[1] == nullptr ? TemplateValue(nullptr) : *bound[1];
}

template <SequenceKind kKind>
Result<TemplateValue> View(const TemplateValue& receiver, const Arguments& arguments,
                           RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  TemplateList items;
  if (!budget.Spend(receiver.dict()->size())) return items;
  items.reserve(receiver.dict()->size());
  for (const auto& [key, value] : *receiver.dict()) {
    if (kKind == SequenceKind::kKeys) items.push_back(KeyValue(key));
    if (kKind == SequenceKind::kValues) items.push_back(value);
    if (kKind == SequenceKind::kItems) {
      items.push_back(TemplateValue(TemplateList{KeyValue(key), value}, SequenceKind::kTuple));
    }
  }
  return Nested(TemplateValue(std::move(items), kKind));
}

constexpr Method kListMethods[] = {{"copy", Itself}, {"count", Count}, {"index", Index}};
constexpr Method kDictMethods[] = {
    {"copy", Itself},
    {"get", Get},
    {"items", View<SequenceKind::kItems>},
    {"keys", View<SequenceKind::kKeys>},
    {"values", View<SequenceKind::kValues>},
};

}  // namespace

std::span<const Method> ListMethods() { return kListMethods; }
std::span<const Method> DictMethods() { return kDictMethods; }

}  // namespace fathom
