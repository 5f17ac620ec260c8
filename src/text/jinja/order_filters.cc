#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "text/jinja/attribute.h"
#include "text/jinja/filter.h"
#include "text/jinja/object.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_text.h"
#include "text/unicode/letter_case.h"

namespace fathom {
namespace {

// Texts are compared without their case, unless the template says otherwise.
TemplateValue Folded(TemplateValue value, bool case_sensitive, RenderBudget& budget) {
  if (case_sensitive || !value.is_text()) return value;
  budget.SpendText(value.text()->size());
  return ToLower(*value.text());
}

struct Keyed {
  TemplateValue key;
  TemplateValue item;
};

// Merges neighbouring runs. Unlike the library's sort it goes wrong only in the order when the
// comparison contradicts itself, as with NaN.
class MergeSort {
 public:
  MergeSort(std::vector<Keyed>& entries, bool reverse, RenderBudget& budget)
      : entries_(entries), reverse_(reverse), budget_(budget) {}

  Result<> Run() {
    for (size_t run = 1; run < entries_.size(); run *= 2) {
      std::vector<Keyed> merged;
      merged.reserve(entries_.size());
      for (size_t begin = 0; begin < entries_.size(); begin += 2 * run) {
        TRY_VOID(Merge(begin, std::min(begin + run, entries_.size()),
                       std::min(begin + 2 * run, entries_.size()), merged));
      }
      entries_ = std::move(merged);
    }
    return {};
  }

 private:
  Result<> Merge(size_t left, size_t middle, size_t end, std::vector<Keyed>& out) {
    size_t right = middle;
    while (left < middle || right < end) {
      bool takes_right = left == middle;
      if (left < middle && right < end && budget_.Spend(1)) {
        const TemplateValue& a = entries_[left].key;
        const TemplateValue& b = entries_[right].key;
        TRY(const std::partial_ordering order, Order(b, a, budget_));
        takes_right = reverse_ ? order > 0 : order < 0;
      }
      out.push_back(std::move(entries_[takes_right ? right++ : left++]));
    }
    return {};
  }

  std::vector<Keyed>& entries_;
  bool reverse_;
  RenderBudget& budget_;
};

// Stable. What cannot be put in order fails the whole.
Result<> SortByKey(std::vector<Keyed>& entries, bool reverse, RenderBudget& budget) {
  return MergeSort(entries, reverse, budget).Run();
}

TemplateValue ItemsOf(std::vector<Keyed> entries) {
  TemplateList items;
  items.reserve(entries.size());
  for (Keyed& entry : entries) items.push_back(std::move(entry.item));
  return items;
}

const TemplateValue& OrNone(const TemplateValue* value) {
  static const TemplateValue kNone(nullptr);
  return value == nullptr ? kNone : *value;
}

Result<std::vector<Keyed>> WithKeys(const TemplateValue& input, const TemplateValue& attribute,
                                    const TemplateValue* fallback, bool case_sensitive,
                                    RenderBudget& budget) {
  TRY(const AttributePath path, AttributePath::Parse(attribute));
  TRY(const TemplateValue items, Items(input, budget));
  std::vector<Keyed> entries;
  for (const TemplateValue& item : items.sequence()->items) {
    if (!budget.Spend(1)) break;
    TRY(TemplateValue key, path.Follow(item, fallback, budget));
    entries.emplace_back(Folded(std::move(key), case_sensitive, budget), item);
  }
  return entries;
}

// "age,name": by both.
Result<std::vector<Keyed>> WithManyKeys(const TemplateValue& input, const std::string& attributes,
                                        bool case_sensitive, RenderBudget& budget) {
  std::vector<AttributePath> paths;
  for (size_t begin = 0; begin <= attributes.size();) {
    const size_t end = std::min(attributes.find(',', begin), attributes.size());
    TRY(AttributePath path, AttributePath::Parse(attributes.substr(begin, end - begin)));
    paths.push_back(std::move(path));
    begin = end + 1;
  }
  TRY(const TemplateValue items, Items(input, budget));
  std::vector<Keyed> entries;
  for (const TemplateValue& item : items.sequence()->items) {
    TemplateList keys;
    for (const AttributePath& path : paths) {
      if (!budget.Spend(1)) return entries;
      TRY(TemplateValue key, path.Follow(item, nullptr, budget));
      keys.push_back(Folded(std::move(key), case_sensitive, budget));
    }
    entries.emplace_back(TemplateValue(std::move(keys)), item);
  }
  return entries;
}

Result<TemplateValue> Sort(const TemplateValue& input, const Arguments& arguments,
                           RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"reverse", "case_sensitive", "attribute"}, 0));
  const TemplateValue& attribute = OrNone(bound[2]);
  const bool many = attribute.is_text() && attribute.text()->find(',') != std::string::npos;
  const bool sensitive = TruthOr(bound[1], false);
  TRY(std::vector<Keyed> entries, many ? WithManyKeys(input, *attribute.text(), sensitive, budget)
                                       : WithKeys(input, attribute, nullptr, sensitive, budget));
  TRY_VOID(SortByKey(entries, TruthOr(bound[0], false), budget));
  return ItemsOf(std::move(entries));
}

Result<TemplateValue> DictSort(const TemplateValue& input, const Arguments& arguments,
                               RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"case_sensitive", "by", "reverse"}, 0));
  if (input.dict() == nullptr) return Fail(Blame::kCaller, "{} is not a dict", TypeName(input));
  TRY(const std::string_view by, TextOr(bound[1], "key"));
  if (by != "key" && by != "value") return Fail(Blame::kCaller, "it sorts by key or by value");
  std::vector<Keyed> entries;
  for (const auto& [key, value] : *input.dict()) {
    if (!budget.Spend(1)) break;
    const TemplateValue& sorted_by = by == "key" ? KeyValue(key) : value;
    entries.emplace_back(Folded(sorted_by, TruthOr(bound[0], false), budget),
                         TemplateValue(TemplateList{KeyValue(key), value}, SequenceKind::kTuple));
  }
  TRY_VOID(SortByKey(entries, TruthOr(bound[2], false), budget));
  return Nested(ItemsOf(std::move(entries)));
}

template <bool kLargest>
Result<TemplateValue> Extreme(const TemplateValue& input, const Arguments& arguments,
                              RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"case_sensitive", "attribute"}, 0));
  TRY(const std::vector<Keyed> entries,
      WithKeys(input, OrNone(bound[1]), nullptr, TruthOr(bound[0], false), budget));
  if (entries.empty()) return TemplateValue();
  const Keyed* best = &entries.front();
  for (const Keyed& entry : entries) {
    if (&entry == best) continue;
    TRY(const std::partial_ordering order, Order(entry.key, best->key, budget));
    if (kLargest ? order > 0 : order < 0) best = &entry;
  }
  return best->item;
}

Result<TemplateValue> Unique(const TemplateValue& input, const Arguments& arguments,
                             RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"case_sensitive", "attribute"}, 0));
  TRY(std::vector<Keyed> entries,
      WithKeys(input, OrNone(bound[1]), nullptr, TruthOr(bound[0], false), budget));
  std::vector<TemplateValue> seen;
  TemplateList items;
  for (Keyed& entry : entries) {
    if (entry.key.dict() != nullptr || entry.key.sequence() != nullptr) {
      return Fail(Blame::kCaller, "{} is not a key", TypeName(entry.key));
    }
    const bool known = std::ranges::any_of(seen, [&](const TemplateValue& key) {
      return budget.Spend(1) && Equals(key, entry.key, budget);
    });
    if (known) continue;
    seen.push_back(std::move(entry.key));
    items.push_back(std::move(entry.item));
  }
  auto iterator = std::make_shared<TemplateIterator>();
  iterator->items = TemplateValue(std::move(items));
  return TemplateValue(std::move(iterator));
}

Result<TemplateValue> GroupBy(const TemplateValue& input, const Arguments& arguments,
                              RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"attribute", "default", "case_sensitive"}, 1));
  const TemplateValue* fallback = bound[1] == nullptr || bound[1]->is_none() ? nullptr : bound[1];
  const bool sensitive = TruthOr(bound[2], false);
  TRY(std::vector<Keyed> entries, WithKeys(input, *bound[0], fallback, sensitive, budget));
  TRY_VOID(SortByKey(entries, false, budget));
  TRY(const AttributePath path, AttributePath::Parse(*bound[0]));
  TemplateList groups;
  for (auto begin = entries.begin(); begin != entries.end();) {
    const auto end = std::find_if(begin, entries.end(), [&](const Keyed& entry) {
      return !budget.Spend(1) || !Equals(entry.key, begin->key, budget);
    });
    if (end == begin) break;
    TRY(TemplateValue key, path.Follow(begin->item, fallback, budget));
    TemplateValue members = ItemsOf({begin, end});
    groups.push_back(
        TemplateValue(TemplateList{std::move(key), std::move(members)}, SequenceKind::kGroup));
    begin = end;
  }
  return Nested(TemplateValue(std::move(groups)));
}

constexpr Filter kOrderFilters[] = {
    {"dictsort", DictSort},  {"groupby", GroupBy}, {"max", Extreme<true>},
    {"min", Extreme<false>}, {"sort", Sort},       {"unique", Unique},
};

}  // namespace

std::span<const Filter> OrderFilters() { return kOrderFilters; }

}  // namespace fathom
