#include "text/jinja/python_operator.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "text/jinja/markup.h"
#include "text/jinja/object.h"
#include "text/jinja/python_format.h"
#include "text/jinja/python_text.h"
#include "text/jinja/text_position.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

using Kind = TemplateValue::Kind;

constexpr std::string_view kOverflow = "a number that is too large";

std::optional<int64_t> Integer(const TemplateValue& value) {
  if (const int64_t* integer = value.integer()) return *integer;
  if (const bool* boolean = value.boolean()) return *boolean ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Number(const TemplateValue& value) {
  if (const double* real = value.real()) return *real;
  if (const LargeInteger* large = value.large_integer()) {
    const double real = std::strtod(large->digits.c_str(), nullptr);
    return std::isfinite(real) ? std::optional(real) : std::nullopt;
  }
  const std::optional<int64_t> integer = Integer(value);
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

// `value` is read here: which argument is evaluated first is anybody's guess.
Result<TemplateValue> Checked(bool overflow, const int64_t& value) {
  if (overflow) return Fail(Blame::kCaller, "{}", kOverflow);
  return value;
}

std::unexpected<Error> Unsupported(std::string_view op, const TemplateValue& a,
                                   const TemplateValue& b) {
  return Fail(Blame::kCaller, "{} {} {} is not possible", TypeName(a), op, TypeName(b));
}

std::string_view Sign(BinaryOperator op) {
  constexpr std::string_view kSigns[] = {"-", "*", "/", "//", "%", "**"};
  return kSigns[static_cast<size_t>(op)];
}

int64_t FloorDivide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

double FloorModulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest != 0) return (rest < 0) != (b < 0) ? rest + b : rest;
  return std::copysign(0.0, b);
}

Result<TemplateValue> IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return Fail(Blame::kCaller, "a division by zero");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  int64_t result = 1;
  bool overflow = false;
  while (exponent > 0 && !overflow) {
    if (exponent % 2 == 1) overflow = __builtin_mul_overflow(result, base, &result);
    exponent /= 2;
    // The last square is not needed and may be too large.
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) overflow = true;
  }
  return Checked(overflow, result);
}

Result<TemplateValue> ApplyIntegers(BinaryOperator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case BinaryOperator::kSubtract:
      return Checked(__builtin_sub_overflow(a, b, &result), result);
    case BinaryOperator::kMultiply:
      return Checked(__builtin_mul_overflow(a, b, &result), result);
    case BinaryOperator::kPower:
      return IntegerPower(a, b);
    default:
      break;
  }
  if (b == 0) return Fail(Blame::kCaller, "a division by zero");
  if (op == BinaryOperator::kDivide) return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1) {
    if (op == BinaryOperator::kModulo) return int64_t{0};
    return Checked(__builtin_sub_overflow(int64_t{0}, a, &result), result);
  }
  const int64_t quotient = FloorDivide(a, b);
  return op == BinaryOperator::kFloorDivide ? quotient : a - quotient * b;
}

Result<TemplateValue> ApplyFloats(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kSubtract:
      return a - b;
    case BinaryOperator::kMultiply:
      return a * b;
    case BinaryOperator::kPower: {
      const double power = std::pow(a, b);
      const bool wrong = (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) ||
                         (std::isnan(power) && !std::isnan(a) && !std::isnan(b));
      if (wrong) return Fail(Blame::kCaller, "{}", kOverflow);
      return power;
    }
    default:
      break;
  }
  if (b == 0) return Fail(Blame::kCaller, "a division by zero");
  if (op == BinaryOperator::kDivide) return a / b;
  const double rest = FloorModulo(a, b);
  if (op == BinaryOperator::kModulo) return rest;
  return std::round((a - rest) / b);
}

TemplateValue RepeatText(const std::string& text, int64_t times, RenderBudget& budget) {
  if (times <= 0 || text.empty()) return "";
  BoundedText out(budget);
  for (int64_t i = 0; i < times && out.open(); ++i) out.Add(text);
  return std::move(out).TakeValue();
}

TemplateValue RepeatList(const TemplateSequence& list, int64_t times, RenderBudget& budget) {
  TemplateList items;
  for (int64_t i = 0; i < times && !list.items.empty(); ++i) {
    if (!budget.Spend(list.items.size())) break;
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return {std::move(items), list.kind};
}

bool IsListOrTuple(const TemplateSequence& sequence) {
  return sequence.kind == SequenceKind::kList || sequence.kind == SequenceKind::kTuple ||
         sequence.kind == SequenceKind::kGroup;
}

std::optional<TemplateValue> Repeat(const TemplateValue& a, const TemplateValue& b,
                                    RenderBudget& budget) {
  const std::optional<int64_t> times = Integer(b);
  if (!times) return std::nullopt;
  if (const std::string* text = a.text()) {
    TemplateValue repeated = RepeatText(*text, *times, budget);
    return a.is_markup() ? std::move(repeated).AsMarkup() : std::move(repeated);
  }
  const TemplateSequence* list = a.sequence();
  if (list == nullptr || !IsListOrTuple(*list)) return std::nullopt;
  return RepeatList(*list, *times, budget);
}

std::optional<TemplateValue> Join(const TemplateSequence& a, const TemplateSequence& b,
                                  RenderBudget& budget) {
  const bool same = IsListOrTuple(a) && IsListOrTuple(b) &&
                    (a.kind == SequenceKind::kList) == (b.kind == SequenceKind::kList);
  if (!same) return std::nullopt;
  if (!budget.Spend(a.items.size() + b.items.size())) return TemplateValue();
  TemplateList items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  const bool list = a.kind == SequenceKind::kList;
  return TemplateValue(std::move(items), list ? SequenceKind::kList : SequenceKind::kTuple);
}

TemplateValue Characters(const std::string& text, RenderBudget& budget) {
  TemplateList items;
  for (std::string_view rest = text; !rest.empty() && budget.Spend(1);) {
    const size_t length = FirstCodePoint(rest).length;
    items.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return items;
}

TemplateValue RestOf(TemplateIterator& iterator, RenderBudget& budget) {
  const TemplateList& all = iterator.items.sequence()->items;
  const size_t begin = iterator.next;
  iterator.next = all.size();
  if (begin == 0) return iterator.items;
  if (!budget.Spend(all.size() - begin)) return TemplateList{};
  return TemplateList(all.begin() + static_cast<ptrdiff_t>(begin), all.end());
}

}  // namespace

Result<TemplateValue> Add(const TemplateValue& a, const TemplateValue& b, RenderBudget& budget) {
  const std::string* x = a.text();
  const std::string* y = b.text();
  if (x != nullptr && y != nullptr) {
    const bool markup = a.is_markup() || b.is_markup();
    BoundedText out(budget);
    out.Add(markup && !a.is_markup() ? Escaped(*x) : *x);
    out.Add(markup && !b.is_markup() ? Escaped(*y) : *y);
    TemplateValue sum = std::move(out).TakeValue();
    return markup ? std::move(sum).AsMarkup() : std::move(sum);
  }
  const std::optional<int64_t> i = Integer(a);
  const std::optional<int64_t> j = Integer(b);
  if (i && j) {
    int64_t result = 0;
    return Checked(__builtin_add_overflow(*i, *j, &result), result);
  }
  const bool floats = a.real() != nullptr || b.real() != nullptr;
  if (floats && Number(a) && Number(b)) return *Number(a) + *Number(b);
  if (a.sequence() != nullptr && b.sequence() != nullptr) {
    std::optional<TemplateValue> joined = Join(*a.sequence(), *b.sequence(), budget);
    if (joined) return Nested(*std::move(joined));
  }
  return Unsupported("+", a, b);
}

Result<TemplateValue> Apply(BinaryOperator op, const TemplateValue& a, const TemplateValue& b,
                            RenderBudget& budget) {
  const std::optional<int64_t> i = Integer(a);
  const std::optional<int64_t> j = Integer(b);
  if (i && j) return ApplyIntegers(op, *i, *j);
  const bool floats = a.real() != nullptr || b.real() != nullptr;
  if (floats && Number(a) && Number(b)) return ApplyFloats(op, *Number(a), *Number(b));
  if (op == BinaryOperator::kMultiply) {
    std::optional<TemplateValue> repeated = Repeat(a, b, budget);
    if (!repeated) repeated = Repeat(b, a, budget);
    if (repeated) return *std::move(repeated);
  }
  if (op == BinaryOperator::kModulo && a.is_text() && !a.is_markup()) {
    return FormatPercent(*a.text(), b, budget);
  }
  return Unsupported(Sign(op), a, b);
}

Result<TemplateValue> Negative(const TemplateValue& value) {
  if (const double* real = value.real()) return -*real;
  const std::optional<int64_t> integer = Integer(value);
  if (!integer) return Fail(Blame::kCaller, "minus {} is not possible", TypeName(value));
  int64_t result = 0;
  return Checked(__builtin_sub_overflow(int64_t{0}, *integer, &result), result);
}

Result<TemplateValue> Positive(const TemplateValue& value) {
  if (value.real() != nullptr || value.large_integer() != nullptr) return value;
  const std::optional<int64_t> integer = Integer(value);
  if (!integer) return Fail(Blame::kCaller, "plus {} is not possible", TypeName(value));
  return *integer;
}

Result<TemplateValue> AsDouble(const LargeInteger& value) {
  const std::optional<double> real = Number(TemplateValue(value));
  if (!real) return Fail(Blame::kCaller, "{}", kOverflow);
  return *real;
}

Result<int64_t> Length(const TemplateValue& value, RenderBudget& budget) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kText:
      budget.SpendText(value.text()->size());
      return static_cast<int64_t>(CountCodePoints(*value.text()));
    case Kind::kSequence:
      return static_cast<int64_t>(value.sequence()->items.size());
    case Kind::kDict:
      return static_cast<int64_t>(value.dict()->size());
    default:
      return Fail(Blame::kCaller, "{} has no length", TypeName(value));
  }
}

Result<TemplateValue> Items(const TemplateValue& value, RenderBudget& budget) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return TemplateList{};
    case Kind::kText:
      return Characters(*value.text(), budget);
    case Kind::kSequence:
      return value;
    case Kind::kDict: {
      TemplateList keys;
      if (!budget.Spend(value.dict()->size())) return keys;
      for (const auto& [key, member] : *value.dict()) keys.push_back(KeyValue(key));
      return keys;
    }
    case Kind::kIterator:
      return RestOf(*value.iterator(), budget);
    default:
      return Fail(Blame::kCaller, "{} cannot be iterated over", TypeName(value));
  }
}

Result<TemplateValue> Nested(TemplateValue value) {
  if (value.depth() <= kMaxValueDepth) return value;
  return Fail(Blame::kCaller, "lists and dicts are nested too deeply");
}

}  // namespace fathom
