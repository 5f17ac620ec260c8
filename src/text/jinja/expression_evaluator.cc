#include <utility>

#include "text/jinja/attribute.h"
#include "text/jinja/bounded_text.h"
#include "text/jinja/filter.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/markup.h"
#include "text/jinja/predicate.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_slice.h"
#include "text/jinja/python_text.h"

namespace fathom {

Interpreter::Borrowed Interpreter::Evaluate(const Expression& expression, TemplateValue& scratch) {
  if (!Step()) return nullptr;
  return std::visit([&](const auto& node) { return EvaluateNode(node, expression, scratch); },
                    expression.node);
}

std::optional<TemplateValue> Interpreter::EvaluateCopy(const Expression& expression) {
  TemplateValue scratch;
  const Borrowed value = Evaluate(expression, scratch);
  if (value == nullptr) return std::nullopt;
  return value == &scratch ? std::move(scratch) : *value;
}

std::optional<bool> Interpreter::EvaluateTruth(const Expression& expression) {
  TemplateValue scratch;
  const Borrowed value = Evaluate(expression, scratch);
  if (value == nullptr) return std::nullopt;
  return Truth(*value);
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Literal& node, const Expression&,
                                                TemplateValue&) {
  return &node.value;
}

Interpreter::Borrowed Interpreter::EvaluateNode(const NameUse& node, const Expression&,
                                                TemplateValue&) {
  return &At(node.place);
}

Interpreter::Borrowed Interpreter::EvaluateNode(const SequenceLiteral& node,
                                                const Expression& expression,
                                                TemplateValue& scratch) {
  TemplateList items;
  items.reserve(node.items.size());
  for (const ExpressionPtr& item : node.items) {
    std::optional<TemplateValue> value = EvaluateCopy(*item);
    if (!value) return nullptr;
    items.push_back(*std::move(value));
  }
  return Take(expression.line, Nested(TemplateValue(std::move(items), node.kind)), scratch);
}

Interpreter::Borrowed Interpreter::EvaluateNode(const DictLiteral& node,
                                                const Expression& expression,
                                                TemplateValue& scratch) {
  TemplateDict members;
  for (const auto& [key_expression, value_expression] : node.members) {
    TemplateValue key_scratch;
    const Borrowed key = Evaluate(*key_expression, key_scratch);
    if (key == nullptr) return nullptr;
    const std::optional<std::string> name = DictKey(*key);
    if (!name) {
      Fails(expression.line, {Blame::kCaller, "a key of this kind is not supported"});
      return nullptr;
    }
    std::optional<TemplateValue> value = EvaluateCopy(*value_expression);
    if (!value) return nullptr;
    budget_.Spend(members.size() / 8);
    SetMember(members, *name, *std::move(value));
  }
  return Take(expression.line, Nested(TemplateValue(std::move(members))), scratch);
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Unary& node, const Expression& expression,
                                                TemplateValue& scratch) {
  TemplateValue lent;
  const Borrowed operand = Evaluate(*node.operand, lent);
  if (operand == nullptr) return nullptr;
  if (node.op == UnaryOperator::kNot) {
    scratch = TemplateValue(!Truth(*operand));
    return &scratch;
  }
  const bool negative = node.op == UnaryOperator::kNegative;
  return Take(expression.line, negative ? Negative(*operand) : Positive(*operand), scratch);
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Binary& node, const Expression& expression,
                                                TemplateValue& scratch) {
  TemplateValue left_lent;
  const Borrowed left = Evaluate(*node.left, left_lent);
  if (left == nullptr) return nullptr;
  TemplateValue right_lent;
  const Borrowed right = Evaluate(*node.right, right_lent);
  if (right == nullptr) return nullptr;
  return Take(expression.line, Apply(node.op, *left, *right, budget_), scratch);
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Sum& node, const Expression& expression,
                                                TemplateValue& scratch) {
  TemplateValue lent;
  const Borrowed first = Evaluate(*node.terms.front(), lent);
  if (first == nullptr) return nullptr;
  if (!first->is_text()) return AddTerms(node, *first, expression.line, scratch);
  std::string text;
  std::string* out = std::exchange(out_, &text);
  bool markup = false;
  const bool fine = WriteTerms(node, *first, expression.line, markup);
  out_ = out;
  if (!fine) return nullptr;
  scratch = TemplateValue(std::move(text));
  if (markup) scratch = std::move(scratch).AsMarkup();
  return &scratch;
}

Interpreter::Borrowed Interpreter::AddTerms(const Sum& sum, const TemplateValue& first,
                                            uint32_t line, TemplateValue& scratch) {
  TemplateValue total = first;
  if (total.is_undefined()) {
    Fails(line, UndefinedError(*sum.terms.front()));
    return nullptr;
  }
  for (size_t i = 1; i < sum.terms.size(); ++i) {
    TemplateValue lent;
    const Borrowed term = Evaluate(*sum.terms[i], lent);
    if (term == nullptr) return nullptr;
    if (term->is_undefined()) {
      Fails(line, UndefinedError(*sum.terms[i]));
      return nullptr;
    }
    if (Take(line, Add(total, *term, budget_), total) == nullptr) return nullptr;
  }
  scratch = std::move(total);
  return &scratch;
}

// Nothing but texts can follow a text: their bytes are copied once.
bool Interpreter::WriteTerms(const Sum& sum, const TemplateValue& first, uint32_t line,
                             bool& markup) {
  const size_t begin = out_->size();
  markup = first.is_markup();
  if (!Write(*first.text())) return false;
  for (size_t i = 1; i < sum.terms.size(); ++i) {
    TemplateValue lent;
    const Borrowed term = Evaluate(*sum.terms[i], lent);
    if (term == nullptr) return false;
    if (term->is_undefined()) return Fails(line, UndefinedError(*sum.terms[i]));
    if (!term->is_text()) {
      return Fails(line,
                   {Blame::kCaller, fmt::format("str + {} is not possible", TypeName(*term))});
    }
    if (!WriteTerm(*term, begin, markup)) return false;
  }
  return true;
}

// `begin`: where the sum begins. A markup makes one of all that stands before it.
bool Interpreter::WriteTerm(const TemplateValue& term, size_t begin, bool& markup) {
  if (term.is_markup() && !markup) {
    markup = true;
    const std::string before = Escaped(std::string_view(*out_).substr(begin));
    out_->resize(begin);
    if (!Write(before)) return false;
  }
  const bool escapes = markup && !term.is_markup();
  return escapes ? Write(Escaped(*term.text())) : Write(*term.text());
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Concatenation& node,
                                                const Expression& expression,
                                                TemplateValue& scratch) {
  std::string text;
  std::string* out = std::exchange(out_, &text);
  bool fine = true;
  for (size_t i = 0; i < node.parts.size() && fine; ++i) {
    TemplateValue lent;
    const Borrowed part = Evaluate(*node.parts[i], lent);
    fine = part != nullptr && PrintValue(*part, expression.line);
  }
  out_ = out;
  if (!fine) return nullptr;
  scratch = TemplateValue(std::move(text));
  return &scratch;
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Logical& node, const Expression&,
                                                TemplateValue& scratch) {
  Borrowed value = nullptr;
  for (const ExpressionPtr& operand : node.operands) {
    value = Evaluate(*operand, scratch);
    if (value == nullptr || Truth(*value) != node.is_and) return value;
  }
  return value;
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Comparison& node,
                                                const Expression& expression,
                                                TemplateValue& scratch) {
  TemplateValue lent[2];
  Borrowed left = Evaluate(*node.first, lent[0]);
  if (left == nullptr) return nullptr;
  size_t next_lent = 1;
  for (const auto& [comparator, operand] : node.others) {
    const Borrowed right = Evaluate(*operand, lent[next_lent]);
    if (right == nullptr) return nullptr;
    const Result<bool> holds = Compare(comparator, *left, *right, budget_);
    if (!holds) {
      Fails(expression.line, holds.error());
      return nullptr;
    }
    scratch = TemplateValue(*holds);
    if (!*holds) break;
    left = right;
    next_lent = 1 - next_lent;
  }
  return &scratch;
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Conditional& node, const Expression&,
                                                TemplateValue& scratch) {
  const std::optional<bool> test = EvaluateTruth(*node.test);
  if (!test) return nullptr;
  if (*test) return Evaluate(*node.yes, scratch);
  if (node.no != nullptr) return Evaluate(*node.no, scratch);
  scratch = TemplateValue();
  return &scratch;
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Attribute& node, const Expression& expression,
                                                TemplateValue& scratch) {
  TemplateValue lent;
  const Borrowed object = Evaluate(*node.object, lent);
  if (object == nullptr) return nullptr;
  if (object->is_undefined()) {
    Fails(expression.line, UndefinedError(*node.object));
    return nullptr;
  }
  if (TemplateLoop* loop = object->loop())
    return GetLoopAttribute(*loop, node.name->of_loop, scratch);
  const bool plain = object != &lent && object->dict() != nullptr &&
                     node.name->of_dict == nullptr && !node.name->changes_dict;
  if (plain) {
    if (const Borrowed member = FindNamed(*object, node.name->name, budget_)) return member;
    scratch = TemplateValue();
    return &scratch;
  }
  return Take(expression.line, GetAttribute(*object, *node.name, budget_), scratch);
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Item& node, const Expression& expression,
                                                TemplateValue& scratch) {
  TemplateValue lent;
  const Borrowed object = Evaluate(*node.object, lent);
  if (object == nullptr) return nullptr;
  TemplateValue key_lent;
  const Borrowed key = Evaluate(*node.key, key_lent);
  if (key == nullptr) return nullptr;
  if (object->is_undefined()) {
    Fails(expression.line, UndefinedError(*node.object));
    return nullptr;
  }
  if (node.name == nullptr) return Take(expression.line, GetItem(*object, *key, budget_), scratch);
  if (TemplateLoop* loop = object->loop())
    return GetLoopAttribute(*loop, node.name->of_loop, scratch);
  if (object != &lent && object->dict() != nullptr) {
    if (const Borrowed member = FindNamed(*object, node.name->name, budget_)) return member;
  }
  return Take(expression.line, GetNamedItem(*object, *node.name, budget_), scratch);
}

bool Interpreter::EvaluateBound(const ExpressionPtr& bound, std::optional<int64_t>& out) {
  if (bound == nullptr) return true;
  TemplateValue lent;
  const Borrowed value = Evaluate(*bound, lent);
  if (value == nullptr) return false;
  if (value->is_none()) return true;
  const Result<int64_t> number = IntegerOr(value, 0);
  if (!number) return Fails(bound->line, number.error());
  out = *number;
  return true;
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Slice& node, const Expression& expression,
                                                TemplateValue& scratch) {
  TemplateValue lent;
  const Borrowed object = Evaluate(*node.object, lent);
  if (object == nullptr) return nullptr;
  SliceRange range;
  if (!EvaluateBound(node.start, range.start) || !EvaluateBound(node.stop, range.stop) ||
      !EvaluateBound(node.step, range.step)) {
    return nullptr;
  }
  if (object->is_undefined()) {
    Fails(expression.line, UndefinedError(*node.object));
    return nullptr;
  }
  return Take(expression.line, TakeSlice(*object, range, budget_), scratch);
}

Interpreter::Borrowed Interpreter::EvaluateNode(const FilterUse& node, const Expression& expression,
                                                TemplateValue& scratch) {
  if (node.filter == nullptr) return RefuseUnknown("filter", node.unknown, expression.line);
  TemplateValue lent;
  const Borrowed input = Evaluate(*node.input, lent);
  if (input == nullptr) return nullptr;
  const std::optional<Arguments> arguments = EvaluateArguments(node.arguments, expression.line);
  if (!arguments) return nullptr;
  auto result = RunFilter(*node.filter, *input, *arguments, budget_);
  if (!result)
    result = std::unexpected(
        std::move(result).error().In(fmt::format("filter '{}'", node.filter->name)));
  return Take(expression.line, std::move(result), scratch);
}

Interpreter::Borrowed Interpreter::RefuseUnknown(std::string_view what, std::string_view name,
                                                 uint32_t line) {
  Fails(line, {Blame::kCaller, fmt::format("{} '{}' is not supported", what, name)});
  return nullptr;
}

Interpreter::Borrowed Interpreter::EvaluateFilters(const Expression& chain,
                                                   const TemplateValue& text,
                                                   TemplateValue& scratch) {
  const FilterUse& node = std::get<FilterUse>(chain.node);
  if (node.filter == nullptr) return RefuseUnknown("filter", node.unknown, chain.line);
  TemplateValue lent;
  const Borrowed input = node.input == nullptr ? &text : EvaluateFilters(*node.input, text, lent);
  if (input == nullptr || !Step()) return nullptr;
  const std::optional<Arguments> arguments = EvaluateArguments(node.arguments, chain.line);
  if (!arguments) return nullptr;
  return Take(chain.line, RunFilter(*node.filter, *input, *arguments, budget_), scratch);
}

Interpreter::Borrowed Interpreter::EvaluateNode(const TestUse& node, const Expression& expression,
                                                TemplateValue& scratch) {
  if (node.test == nullptr) return RefuseUnknown("test", node.unknown, expression.line);
  TemplateValue lent;
  const Borrowed input = Evaluate(*node.input, lent);
  if (input == nullptr) return nullptr;
  const std::optional<Arguments> arguments = EvaluateArguments(node.arguments, expression.line);
  if (!arguments) return nullptr;
  Result<bool> holds = node.test->run(*input, *arguments, budget_);
  if (!holds) {
    Fails(expression.line, std::move(holds).error().In(fmt::format("test '{}'", node.test->name)));
    return nullptr;
  }
  scratch = TemplateValue(*holds);
  return &scratch;
}

}  // namespace fathom
