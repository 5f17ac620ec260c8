#include <string>

#include "text/jinja/attribute.h"
#include "text/jinja/filter.h"
#include "text/jinja/markup.h"
#include "text/jinja/object.h"
#include "text/jinja/predicate.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_text.h"

namespace fathom {
namespace {

TemplateValue Iterator(TemplateList items) {
  auto iterator = std::make_shared<TemplateIterator>();
  iterator->items = TemplateValue(std::move(items));
  return TemplateValue(std::move(iterator));
}

// The arguments behind the first `used` ones, for the filter or test that they name.
Arguments ArgumentsAfter(const Arguments& arguments, size_t used) {
  const auto& positional = arguments.positional;
  const auto begin = positional.begin() + static_cast<ptrdiff_t>(std::min(used, positional.size()));
  return {{begin, positional.end()}, arguments.keywords};
}

Result<TemplateValue> MapAttribute(const TemplateValue& input, const Arguments& arguments,
                                   RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"attribute", "default"}, 1));
  TRY(const AttributePath path, AttributePath::Parse(*bound[0]));
  const TemplateValue* fallback = bound[1] == nullptr || bound[1]->is_none() ? nullptr : bound[1];
  TRY(const TemplateValue items, Items(input, budget));
  TemplateList out;
  for (const TemplateValue& item : items.sequence()->items) {
    if (!budget.Spend(1)) break;
    TRY(TemplateValue value, path.Follow(item, fallback, budget));
    out.push_back(std::move(value));
  }
  return Nested(Iterator(std::move(out)));
}

Result<TemplateValue> MapFilter(const TemplateValue& input, const Arguments& arguments,
                                RenderBudget& budget) {
  if (!Truth(input)) return Iterator({});
  if (arguments.positional.empty()) return MapAttribute(input, arguments, budget);
  TRY(const std::string_view name, TextOr(&arguments.positional.front(), ""));
  const Filter* filter = FindFilter(name);
  if (filter == nullptr || NamedByArguments(*filter) != NamesWhat::kNothing) {
    return Fail(Blame::kCaller, "a filter that cannot be named here");
  }
  const Arguments others = ArgumentsAfter(arguments, 1);
  TRY(const TemplateValue items, Items(input, budget));
  TemplateList out;
  for (const TemplateValue& item : items.sequence()->items) {
    if (!budget.Spend(1)) break;
    TRY(TemplateValue value, RunFilter(*filter, item, others, budget));
    out.push_back(std::move(value));
  }
  return Nested(Iterator(std::move(out)));
}

template <bool kByAttribute, bool kWanted>
Result<TemplateValue> Select(const TemplateValue& input, const Arguments& arguments,
                             RenderBudget& budget) {
  constexpr size_t kTestAt = kByAttribute ? 1 : 0;
  if (!Truth(input)) return Iterator({});
  const auto& positional = arguments.positional;
  if (positional.size() < kTestAt) return Fail(Blame::kCaller, "the attribute is missing");
  TRY(const AttributePath path,
      AttributePath::Parse(kByAttribute ? positional[0] : TemplateValue(nullptr)));
  const Predicate* test = nullptr;
  if (positional.size() > kTestAt) {
    TRY(const std::string_view name, TextOr(&positional[kTestAt], ""));
    test = FindPredicate(name);
    if (test == nullptr) return Fail(Blame::kCaller, "a test that is not known");
  }
  const Arguments others = ArgumentsAfter(arguments, kTestAt + 1);
  TRY(const TemplateValue items, Items(input, budget));
  TemplateList out;
  for (const TemplateValue& item : items.sequence()->items) {
    if (!budget.Spend(1)) break;
    TRY(const TemplateValue value, path.Follow(item, nullptr, budget));
    bool holds = Truth(value);
    if (test != nullptr) {
      TRY(holds, test->run(value, others, budget));
    }
    if (holds == kWanted) out.push_back(item);
  }
  return Iterator(std::move(out));
}

// attribute of an object, never a member of a dict.
Result<TemplateValue> Attr(const TemplateValue& input, const Arguments& arguments,
                           RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"name"}, 1));
  TRY(const std::string_view name, TextOr(bound[0], ""));
  if (input.is_undefined()) return Fail(Blame::kCaller, "an attribute of an undefined value");
  if (input.dict() != nullptr && FindMethods(name).of_dict == nullptr) return TemplateValue();
  return GetAttribute(input, FindMethods(name), budget);
}

constexpr Filter kSelectFilters[] = {
    {"attr", Attr},
    {"map", MapFilter},
    {"reject", Select<false, false>},
    {"rejectattr", Select<true, false>},
    {"select", Select<false, true>},
    {"selectattr", Select<true, true>},
};

}  // namespace

std::span<const Filter> SelectFilters() { return kSelectFilters; }

}  // namespace fathom
