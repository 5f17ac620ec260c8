#include <algorithm>

#include "text/jinja/attribute.h"
#include "text/jinja/bounded_text.h"
#include "text/jinja/filter.h"
#include "text/jinja/object.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_slice.h"
#include "text/jinja/python_text.h"

namespace fathom {
namespace {

TemplateValue Iterator(TemplateList items) {
  auto iterator = std::make_shared<TemplateIterator>();
  iterator->items = TemplateValue(std::move(items));
  return TemplateValue(std::move(iterator));
}

Result<TemplateValue> Default(const TemplateValue& input, const Arguments& arguments,
                              RenderBudget&) {
  TRY(const auto bound, Bind(arguments, {"default_value", "boolean"}, 0));
  const bool replaced = input.is_undefined() || (TruthOr(bound[1], false) && !Truth(input));
  if (!replaced) return input;
  return bound[0] == nullptr ? TemplateValue("") : *bound[0];
}

Result<TemplateValue> LengthFilter(const TemplateValue& input, const Arguments& arguments,
                                   RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  TRY(const int64_t length, Length(input, budget));
  return length;
}

Result<TemplateValue> First(const TemplateValue& input, const Arguments& arguments,
                            RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  if (input.is_text()) return TakeIndex(input, 0, budget);
  if (TemplateIterator* iterator = input.iterator()) {
    const TemplateList& items = iterator->items.sequence()->items;
    return iterator->next < items.size() ? items[iterator->next++] : TemplateValue();
  }
  TRY(const TemplateValue items, Items(input, budget));
  const TemplateList& list = items.sequence()->items;
  return list.empty() ? TemplateValue() : list.front();
}

Result<TemplateValue> Last(const TemplateValue& input, const Arguments& arguments,
                           RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  if (input.is_text()) return TakeIndex(input, -1, budget);
  if (input.iterator() != nullptr) return Fail(Blame::kCaller, "a generator has no last item");
  TRY(const TemplateValue items, Items(input, budget));
  const TemplateList& list = items.sequence()->items;
  return list.empty() ? TemplateValue() : list.back();
}

Result<TemplateValue> List(const TemplateValue& input, const Arguments& arguments,
                           RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  TRY(TemplateValue items, Items(input, budget));
  if (items.sequence()->kind == SequenceKind::kList) return items;
  if (!budget.Spend(items.sequence()->items.size())) return TemplateValue();
  return TemplateValue(TemplateList(items.sequence()->items));
}

Result<TemplateValue> ItemPairs(const TemplateValue& input, const Arguments& arguments,
                                RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  if (input.is_undefined()) return Iterator({});
  if (input.dict() == nullptr) return Fail(Blame::kCaller, "{} has no items", TypeName(input));
  TemplateList pairs;
  if (!budget.Spend(input.dict()->size())) return TemplateValue();
  for (const auto& [key, value] : *input.dict()) {
    pairs.push_back(TemplateValue(TemplateList{KeyValue(key), value}, SequenceKind::kTuple));
  }
  return Nested(Iterator(std::move(pairs)));
}

Result<TemplateValue> Join(const TemplateValue& input, const Arguments& arguments,
                           RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"d", "attribute"}, 0));
  TRY(const TemplateValue separator,
      Str(bound[0] == nullptr ? TemplateValue("") : *bound[0], budget));
  TRY(const AttributePath path,
      AttributePath::Parse(bound[1] == nullptr ? TemplateValue(nullptr) : *bound[1]));
  TRY(const TemplateValue items, Items(input, budget));
  BoundedText out(budget);
  bool first = true;
  for (const TemplateValue& item : items.sequence()->items) {
    if (!budget.Spend(1)) break;
    if (!first) out.Add(*separator.text());
    first = false;
    TRY(const TemplateValue value, path.Follow(item, nullptr, budget));
    TRY_VOID(AppendStr(out, value));
  }
  return std::move(out).TakeValue();
}

Result<TemplateValue> Reverse(const TemplateValue& input, const Arguments& arguments,
                              RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  if (input.is_text()) return TakeSlice(input, {.step = -1}, budget);
  TRY(const TemplateValue items, Items(input, budget));
  if (!budget.Spend(items.sequence()->items.size())) return TemplateValue();
  TemplateList reversed(items.sequence()->items.rbegin(), items.sequence()->items.rend());
  // Of an iterator jinja2 makes a list.
  if (input.iterator() != nullptr) return TemplateValue(std::move(reversed));
  return Iterator(std::move(reversed));
}

Result<TemplateValue> Batch(const TemplateValue& input, const Arguments& arguments,
                            RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"linecount", "fill_with"}, 1));
  TRY(const int64_t count, IntegerOr(bound[0], 0));
  TRY(const TemplateValue items, Items(input, budget));
  TemplateList batches;
  TemplateList batch;
  for (const TemplateValue& item : items.sequence()->items) {
    if (!budget.Spend(1)) break;
    if (static_cast<int64_t>(batch.size()) == count) {
      batches.emplace_back(std::exchange(batch, {}));
    }
    batch.push_back(item);
  }
  if (batch.empty()) return Nested(Iterator(std::move(batches)));
  const bool fill = bound[1] != nullptr && !bound[1]->is_none();
  while (fill && static_cast<int64_t>(batch.size()) < count && budget.Spend(1))
    batch.push_back(*bound[1]);
  batches.emplace_back(std::move(batch));
  return Nested(Iterator(std::move(batches)));
}

Result<TemplateValue> SliceFilter(const TemplateValue& input, const Arguments& arguments,
                                  RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"slices", "fill_with"}, 1));
  TRY(const int64_t count, IntegerOr(bound[0], 0));
  if (count <= 0) return Fail(Blame::kCaller, "the number of slices must be at least 1");
  TRY(const TemplateValue items, Items(input, budget));
  const TemplateList& all = items.sequence()->items;
  const auto length = static_cast<int64_t>(all.size());
  const bool fill = bound[1] != nullptr && !bound[1]->is_none();
  TemplateList slices;
  auto next = all.begin();
  for (int64_t i = 0; i < count && budget.Spend(1); ++i) {
    const bool extra = i < length % count;
    const auto end = next + static_cast<ptrdiff_t>(length / count + (extra ? 1 : 0));
    TemplateList slice(next, end);
    if (fill && !extra) slice.push_back(*bound[1]);
    slices.emplace_back(std::move(slice));
    next = end;
  }
  return Nested(Iterator(std::move(slices)));
}

Result<TemplateValue> SumOfItems(const TemplateValue& input, const Arguments& arguments,
                                 RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"attribute", "start"}, 0));
  TRY(const AttributePath path,
      AttributePath::Parse(bound[0] == nullptr ? TemplateValue(nullptr) : *bound[0]));
  TRY(const TemplateValue items, Items(input, budget));
  TemplateValue sum = bound[1] == nullptr ? TemplateValue(0) : *bound[1];
  if (sum.is_text()) return Fail(Blame::kCaller, "texts cannot be summed");
  for (const TemplateValue& item : items.sequence()->items) {
    if (!budget.Spend(1)) break;
    TRY(const TemplateValue value, path.Follow(item, nullptr, budget));
    TRY(sum, Add(sum, value, budget));
  }
  return sum;
}

constexpr Filter kListFilters[] = {
    {"batch", Batch},         {"count", LengthFilter}, {"d", Default},       {"default", Default},
    {"first", First},         {"items", ItemPairs},    {"join", Join},       {"last", Last},
    {"length", LengthFilter}, {"list", List},          {"reverse", Reverse}, {"slice", SliceFilter},
    {"sum", SumOfItems},
};

}  // namespace

std::span<const Filter> ListFilters() { return kListFilters; }

}  // namespace fathom
