#include "text/jinja/predicate.h"

#include <algorithm>

#include "text/jinja/method.h"
#include "text/jinja/object.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_text.h"

namespace fathom {
namespace {

using Kind = TemplateValue::Kind;

template <Kind kKind>
Result<bool> IsOfKind(const TemplateValue& value, const Arguments& arguments, RenderBudget&) {
  TRY_VOID(BindNone(arguments));
  return value.kind() == kKind;
}

template <bool (*kHolds)(const TemplateValue&)>
Result<bool> Holds(const TemplateValue& value, const Arguments& arguments, RenderBudget&) {
  TRY_VOID(BindNone(arguments));
  return kHolds(value);
}

bool IsMarkup(const TemplateValue& value) { return value.is_markup(); }
bool IsDefined(const TemplateValue& value) { return !value.is_undefined(); }
bool IsTrue(const TemplateValue& value) { return value.boolean() != nullptr && *value.boolean(); }
bool IsFalse(const TemplateValue& value) { return value.boolean() != nullptr && !*value.boolean(); }
bool IsInteger(const TemplateValue& value) {
  return value.kind() == Kind::kInteger || value.kind() == Kind::kLargeInteger;
}
bool IsNumber(const TemplateValue& value) {
  return value.kind() >= Kind::kBoolean && value.kind() <= Kind::kFloat;
}
bool IsSequence(const TemplateValue& value) {
  if (const TemplateSequence* sequence = value.sequence())
    return sequence->kind <= SequenceKind::kRange;
  return value.is_undefined() || value.is_text() || value.dict() != nullptr;
}
bool IsIterable(const TemplateValue& value) {
  return value.is_undefined() || value.is_text() || value.kind() == Kind::kSequence ||
         value.kind() == Kind::kDict || value.kind() == Kind::kIterator ||
         value.kind() == Kind::kLoop;
}
bool IsCallable(const TemplateValue& value) {
  return value.kind() == Kind::kCallable || value.kind() == Kind::kLoop || value.is_undefined();
}

template <Comparator kComparator>
Result<bool> Compares(const TemplateValue& value, const Arguments& arguments,
                      RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"other"}, 1));
  return Compare(kComparator, value, *bound[0], budget);
}

Result<bool> IsSameAs(const TemplateValue& value, const Arguments& arguments, RenderBudget&) {
  TRY(const auto bound, Bind(arguments, {"other"}, 1));
  return value.Is(*bound[0]);
}

Result<bool> HasRest(const TemplateValue& value, const TemplateValue& divisor, int64_t rest,
                     RenderBudget& budget) {
  if (value.is_text()) return Fail(Blame::kCaller, "{} is not a number", TypeName(value));
  TRY(const TemplateValue modulo, Apply(BinaryOperator::kModulo, value, divisor, budget));
  return Equals(modulo, rest, budget);
}

template <int64_t kRest>
Result<bool> HasParity(const TemplateValue& value, const Arguments& arguments,
                       RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  return HasRest(value, 2, kRest, budget);
}

Result<bool> IsDivisibleBy(const TemplateValue& value, const Arguments& arguments,
                           RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"num"}, 1));
  return HasRest(value, *bound[0], 0, budget);
}

// lower, upper: what the method of the text says.
template <char kFirst>
Result<bool> HasCase(const TemplateValue& value, const Arguments& arguments, RenderBudget& budget) {
  TRY(const TemplateValue text, Str(value, budget));
  const MethodName method = FindMethods(kFirst == 'l' ? "islower" : "isupper");
  TRY(const TemplateValue answer, method.of_text->run(text, arguments, budget));
  return Truth(answer);
}

constexpr Predicate kPredicates[] = {
    {"!=", Compares<Comparator::kNotEqual>},
    {"<", Compares<Comparator::kLess>},
    {"<=", Compares<Comparator::kLessEqual>},
    {"==", Compares<Comparator::kEqual>},
    {">", Compares<Comparator::kGreater>},
    {">=", Compares<Comparator::kGreaterEqual>},
    {"boolean", IsOfKind<Kind::kBoolean>},
    {"callable", Holds<IsCallable>},
    {"defined", Holds<IsDefined>},
    {"divisibleby", IsDivisibleBy},
    {"eq", Compares<Comparator::kEqual>},
    {"equalto", Compares<Comparator::kEqual>},
    {"escaped", Holds<IsMarkup>},
    {"even", HasParity<0>},
    {"false", Holds<IsFalse>},
    {"float", IsOfKind<Kind::kFloat>},
    {"ge", Compares<Comparator::kGreaterEqual>},
    {"greaterthan", Compares<Comparator::kGreater>},
    {"gt", Compares<Comparator::kGreater>},
    {"in", Compares<Comparator::kIn>},
    {"integer", Holds<IsInteger>},
    {"iterable", Holds<IsIterable>},
    {"le", Compares<Comparator::kLessEqual>},
    {"lessthan", Compares<Comparator::kLess>},
    {"lower", HasCase<'l'>},
    {"lt", Compares<Comparator::kLess>},
    {"mapping", IsOfKind<Kind::kDict>},
    {"ne", Compares<Comparator::kNotEqual>},
    {"none", IsOfKind<Kind::kNone>},
    {"number", Holds<IsNumber>},
    {"odd", HasParity<1>},
    {"sameas", IsSameAs},
    {"sequence", Holds<IsSequence>},
    {"string", IsOfKind<Kind::kText>},
    {"true", Holds<IsTrue>},
    {"undefined", IsOfKind<Kind::kUndefined>},
    {"upper", HasCase<'u'>},
};

}  // namespace

const Predicate* FindPredicate(std::string_view name) {
  const auto found = std::ranges::find(kPredicates, name, &Predicate::name);
  return found == std::end(kPredicates) ? nullptr : &*found;
}

}  // namespace fathom
