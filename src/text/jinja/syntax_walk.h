// Every expression inside of an expression, and every part of a statement, whatever they are.
#pragma once

#include <utility>
#include <variant>

#include "text/jinja/syntax.h"

namespace fathom {

// Calls `visit` for what stands directly in a node.
template <class Visit>
struct ChildVisitor {
  Visit& visit;

  void One(const ExpressionPtr& child) const {
    if (child != nullptr) visit(*child);
  }
  void All(const Expressions& children) const {
    for (const ExpressionPtr& child : children) One(child);
  }
  void All(const ArgumentList& list) const {
    All(list.positional);
    for (const auto& [name, value] : list.keywords) One(value);
    One(list.more_positional);
    One(list.more_keywords);
  }

  void operator()(const Literal&) const {}
  void operator()(const NameUse&) const {}
  void operator()(const SequenceLiteral& node) const { All(node.items); }
  void operator()(const DictLiteral& node) const {
    for (const auto& [key, value] : node.members) {
      One(key);
      One(value);
    }
  }
  void operator()(const Unary& node) const { One(node.operand); }
  void operator()(const Binary& node) const {
    One(node.left);
    One(node.right);
  }
  void operator()(const Sum& node) const { All(node.terms); }
  void operator()(const Concatenation& node) const { All(node.parts); }
  void operator()(const Logical& node) const { All(node.operands); }
  void operator()(const Comparison& node) const {
    One(node.first);
    for (const auto& [comparator, other] : node.others) One(other);
  }
  void operator()(const Conditional& node) const {
    One(node.test);
    One(node.yes);
    One(node.no);
  }
  void operator()(const Attribute& node) const { One(node.object); }
  void operator()(const Item& node) const {
    One(node.object);
    One(node.key);
  }
  void operator()(const Slice& node) const {
    One(node.object);
    One(node.start);
    One(node.stop);
    One(node.step);
  }
  void operator()(const Call& node) const {
    One(node.callee);
    All(node.arguments);
  }
  void operator()(const FilterUse& node) const {
    One(node.input);
    All(node.arguments);
  }
  void operator()(const TestUse& node) const {
    One(node.input);
    All(node.arguments);
  }
};

template <class Visit>
void ForEachChild(const Expression& expression, Visit visit) {
  std::visit(ChildVisitor<Visit>{visit}, expression.node);
}

// Calls `expression` and `block` for what stands directly in a statement.
template <class OnExpression, class OnBlock>
struct PartVisitor {
  OnExpression& expression;
  OnBlock& block;

  void One(const ExpressionPtr& part) const {
    if (part != nullptr) expression(*part);
  }
  void Body(const Function& function) const {
    for (const Function::Parameter& parameter : function.parameters) One(parameter.fallback);
    block(function.body);
  }

  void operator()(const TextOutput&) const {}
  void operator()(const ValueOutput& node) const { One(node.value); }
  void operator()(const IfStatement& node) const {
    for (const auto& [test, body] : node.branches) {
      One(test);
      block(body);
    }
    block(node.otherwise);
  }
  void operator()(const ForStatement& node) const {
    One(node.items);
    One(node.test);
    block(node.body);
    block(node.otherwise);
  }
  void operator()(const SetStatement& node) const { One(node.value); }
  void operator()(const SetBlockStatement& node) const {
    One(node.filter);
    block(node.body);
  }
  void operator()(const FilterBlockStatement& node) const {
    One(node.filter);
    block(node.body);
  }
  void operator()(const WithStatement& node) const {
    for (const auto& [target, value] : node.values) One(value);
    block(node.body);
  }
  void operator()(const ScopeStatement& node) const { block(node.body); }
  void operator()(const MacroStatement& node) const { Body(*node.function); }
  void operator()(const CallBlockStatement& node) const {
    One(node.call);
    Body(*node.caller);
  }
  void operator()(const BreakStatement&) const {}
  void operator()(const ContinueStatement&) const {}
};

template <class OnExpression, class OnBlock>
void ForEachPart(const Statement& statement, OnExpression on_expression, OnBlock on_block) {
  std::visit(PartVisitor<OnExpression, OnBlock>{on_expression, on_block}, statement.node);
}

}  // namespace fathom
