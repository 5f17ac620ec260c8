#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdlib>

#include "text/jinja/object.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_text.h"

namespace fathom {
namespace {

using Kind = TemplateValue::Kind;

bool IsComparableNumber(const TemplateValue& value) {
  return value.kind() >= Kind::kBoolean && value.kind() <= Kind::kFloat;
}

int64_t AsInteger(const TemplateValue& value) {
  if (const bool* boolean = value.boolean()) return *boolean ? 1 : 0;
  return *value.integer();
}

// More digits are more, unless both are negative.
std::strong_ordering OrderDigits(std::string_view a, std::string_view b) {
  const bool negative = a.starts_with('-');
  if (negative != b.starts_with('-')) {
    return negative ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  const auto order = a.size() != b.size() ? a.size() <=> b.size() : a <=> b;
  return negative ? 0 <=> order : order;
}

// Numbers that no float can hold exactly are compared as integers. A large one is beyond all that
// are not.
std::strong_ordering OrderIntegers(const TemplateValue& a, const TemplateValue& b) {
  const LargeInteger* x = a.large_integer();
  const LargeInteger* y = b.large_integer();
  if (x == nullptr && y == nullptr) return AsInteger(a) <=> AsInteger(b);
  if (x != nullptr && y != nullptr) return OrderDigits(x->digits, y->digits);
  const bool negative = (x != nullptr ? x : y)->digits.starts_with('-');
  return (x != nullptr) != negative ? std::strong_ordering::greater : std::strong_ordering::less;
}

// long double has the 64 bits that each integer of that size needs.
long double AsReal(const TemplateValue& value) {
  if (const double* real = value.real()) return *real;
  if (const LargeInteger* large = value.large_integer()) {
    return std::strtold(large->digits.c_str(), nullptr);
  }
  return AsInteger(value);
}

std::partial_ordering OrderNumbers(const TemplateValue& a, const TemplateValue& b) {
  const double* x = a.real();
  const double* y = b.real();
  if (x == nullptr && y == nullptr) return OrderIntegers(a, b);
  if (x != nullptr && y != nullptr) return *x <=> *y;
  return AsReal(a) <=> AsReal(b);
}

bool IsTuple(SequenceKind kind) {
  return kind == SequenceKind::kTuple || kind == SequenceKind::kGroup;
}

bool SameType(SequenceKind a, SequenceKind b) { return a == b || (IsTuple(a) && IsTuple(b)); }

bool EqualSequences(const TemplateSequence& a, const TemplateSequence& b, RenderBudget& budget) {
  if (!SameType(a.kind, b.kind) || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!budget.Spend(1) || !Equals(a.items[i], b.items[i], budget)) return false;
  }
  return true;
}

bool EqualDicts(const TemplateDict& a, const TemplateDict& b, RenderBudget& budget) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    // Most often both have their keys in the same order.
    const TemplateValue* other =
        b[i].first == a[i].first ? &b[i].second : FindMember(b, a[i].first);
    const bool in_order = other == &b[i].second;
    if (!budget.Spend(in_order ? 1 : b.size()) || other == nullptr) return false;
    if (!Equals(a[i].second, *other, budget)) return false;
  }
  return true;
}

bool ContainsItem(const TemplateList& items, const TemplateValue& item, RenderBudget& budget) {
  return std::ranges::any_of(items, [&](const TemplateValue& each) {
    return budget.Spend(1) && Equals(each, item, budget);
  });
}

Result<std::partial_ordering> OrderSequences(const TemplateSequence& a, const TemplateSequence& b,
                                             RenderBudget& budget) {
  const size_t common = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < common; ++i) {
    if (!budget.Spend(1)) break;
    if (!Equals(a.items[i], b.items[i], budget)) return Order(a.items[i], b.items[i], budget);
  }
  return a.items.size() <=> b.items.size();
}

}  // namespace

bool Truth(const TemplateValue& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBoolean:
      return *value.boolean();
    case Kind::kInteger:
      return *value.integer() != 0;
    case Kind::kFloat:
      return *value.real() != 0;
    case Kind::kText:
      return !value.text()->empty();
    case Kind::kSequence:
      return !value.sequence()->items.empty();
    case Kind::kDict:
      return !value.dict()->empty();
    default:
      return true;
  }
}

bool Equals(const TemplateValue& a, const TemplateValue& b, RenderBudget& budget) {
  if (IsComparableNumber(a) && IsComparableNumber(b))
    return OrderNumbers(a, b) == std::partial_ordering::equivalent;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kText:
      budget.SpendText(std::min(a.text()->size(), b.text()->size()));
      return *a.text() == *b.text();
    case Kind::kSequence:
      return a.sequence() == b.sequence() || EqualSequences(*a.sequence(), *b.sequence(), budget);
    case Kind::kDict:
      return a.dict() == b.dict() || EqualDicts(*a.dict(), *b.dict(), budget);
    default:
      return a.Is(b);
  }
}

Result<std::partial_ordering> Order(const TemplateValue& a, const TemplateValue& b,
                                    RenderBudget& budget) {
  if (IsComparableNumber(a) && IsComparableNumber(b)) return OrderNumbers(a, b);
  if (a.is_text() && b.is_text()) {
    budget.SpendText(std::min(a.text()->size(), b.text()->size()));
    return *a.text() <=> *b.text();
  }
  const TemplateSequence* x = a.sequence();
  const TemplateSequence* y = b.sequence();
  const bool ordered = x != nullptr && y != nullptr && SameType(x->kind, y->kind) &&
                       (IsTuple(x->kind) || x->kind == SequenceKind::kList);
  if (ordered) return OrderSequences(*x, *y, budget);
  return Fail(Blame::kCaller, "{} and {} have no order", TypeName(a), TypeName(b));
}

Result<bool> Compare(Comparator comparator, const TemplateValue& a, const TemplateValue& b,
                     RenderBudget& budget) {
  switch (comparator) {
    case Comparator::kEqual:
      return Equals(a, b, budget);
    case Comparator::kNotEqual:
      return !Equals(a, b, budget);
    case Comparator::kIn:
      return Contains(b, a, budget);
    case Comparator::kNotIn: {
      TRY(const bool contains, Contains(b, a, budget));
      return !contains;
    }
    default:
      break;
  }
  TRY(const std::partial_ordering order, Order(a, b, budget));
  switch (comparator) {
    case Comparator::kLess:
      return order < 0;
    case Comparator::kLessEqual:
      return order <= 0;
    case Comparator::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

Result<bool> Contains(const TemplateValue& container, const TemplateValue& item,
                      RenderBudget& budget) {
  if (const std::string* text = container.text()) {
    if (!item.is_text()) return Fail(Blame::kCaller, "{} is looked for in a text", TypeName(item));
    budget.SpendText(text->size());
    return text->find(*item.text()) != std::string::npos;
  }
  if (const TemplateDict* dict = container.dict()) {
    budget.Spend(dict->size() / 8);
    if (item.kind() == Kind::kSequence || item.kind() == Kind::kDict) {
      return Fail(Blame::kCaller, "{} is not a key", TypeName(item));
    }
    const std::optional<std::string> key = DictKey(item);
    return key && FindMember(*dict, *key) != nullptr;
  }
  TRY(const TemplateValue items, Items(container, budget));
  return ContainsItem(items.sequence()->items, item, budget);
}

}  // namespace fathom
