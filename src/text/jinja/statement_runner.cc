#include <utility>

#include "text/jinja/interpreter.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_text.h"

namespace fathom {

Interpreter::Flow Interpreter::Run(const Block& block) {
  for (const Statement& statement : block) {
    if (!Step()) return Flow::kFailed;
    const Flow flow =
        std::visit([&](const auto& node) { return RunNode(node, statement.line); }, statement.node);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

void Interpreter::Enter(const ScopeEntry& entry) {
  for (const SlotStart& start : entry) {
    if (start.from) {
      TemplateValue value = At(*start.from);
      Slot(start.slot) = std::move(value);
    } else {
      Slot(start.slot) = TemplateValue();
    }
  }
}

bool Interpreter::Write(std::string_view text) {
  const bool fits = text.size() <= budget_.limits().output - out_->size();
  if (!budget_.SpendText(fits ? text.size() : budget_.limits().output + 1)) {
    return Fails(0, budget_.error());
  }
  *out_ += text;
  return true;
}

bool Interpreter::PrintValue(const TemplateValue& value, uint32_t line) {
  if (const std::string* text = value.text()) return Write(*text);
  Result<TemplateValue> text = Str(value, budget_);
  if (!text) return Fails(line, std::move(text).error());
  return Write(*text->text());
}

bool Interpreter::Print(const Expression& expression) {
  TemplateValue scratch;
  const Sum* sum = std::get_if<Sum>(&expression.node);
  if (sum == nullptr) {
    const Borrowed value = Evaluate(expression, scratch);
    return value != nullptr && PrintValue(*value, expression.line);
  }
  const Borrowed first = Evaluate(*sum->terms.front(), scratch);
  if (first == nullptr) return false;
  bool markup = false;
  if (first->is_text()) return WriteTerms(*sum, *first, expression.line, markup);
  TemplateValue total;
  const Borrowed value = AddTerms(*sum, *first, expression.line, total);
  return value != nullptr && PrintValue(*value, expression.line);
}

bool Interpreter::Assign(const Target& target, TemplateValue value) {
  if (target.attribute) {
    TemplateNamespace* name_space = At(target.place).name_space();
    if (name_space == nullptr) {
      return Fails(target.line, {Blame::kCaller, "only attributes of a namespace can be set"});
    }
    budget_.Spend(name_space->attributes.size() / 8);
    SetMember(name_space->attributes, *target.attribute, std::move(value));
    return true;
  }
  if (!target.is_tuple) {
    At(target.place) = std::move(value);
    return true;
  }
  Result<TemplateValue> items = Items(value, budget_);
  if (!items) return Fails(target.line, std::move(items).error());
  const TemplateList& list = items->sequence()->items;
  if (list.size() != target.parts.size()) {
    return Fails(target.line, {Blame::kCaller, fmt::format("{} values for {} names", list.size(),
                                                           target.parts.size())});
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (!Assign(target.parts[i], list[i])) return false;
  }
  return true;
}

std::optional<TemplateValue> Interpreter::Capture(const Block& block, Flow& flow) {
  std::string text;
  std::string* out = std::exchange(out_, &text);
  flow = Run(block);
  out_ = out;
  if (flow == Flow::kFailed) return std::nullopt;
  return TemplateValue(std::move(text));
}

Interpreter::Flow Interpreter::RunNode(const TextOutput& node, uint32_t) {
  return Write(node.text) ? Flow::kNext : Flow::kFailed;
}

Interpreter::Flow Interpreter::RunNode(const ValueOutput& node, uint32_t) {
  return Print(*node.value) ? Flow::kNext : Flow::kFailed;
}

Interpreter::Flow Interpreter::RunNode(const IfStatement& node, uint32_t) {
  for (const auto& [test, body] : node.branches) {
    const std::optional<bool> holds = EvaluateTruth(*test);
    if (!holds) return Flow::kFailed;
    if (*holds) return Run(body);
  }
  return Run(node.otherwise);
}

Interpreter::Flow Interpreter::RunNode(const SetStatement& node, uint32_t) {
  std::optional<TemplateValue> value = EvaluateCopy(*node.value);
  if (!value) return Flow::kFailed;
  return Assign(node.target, *std::move(value)) ? Flow::kNext : Flow::kFailed;
}

Interpreter::Flow Interpreter::RunNode(const SetBlockStatement& node, uint32_t) {
  Enter(node.entry);
  Flow flow = Flow::kNext;
  std::optional<TemplateValue> text = Capture(node.body, flow);
  if (!text || flow != Flow::kNext) return flow;
  if (node.filter != nullptr) {
    TemplateValue scratch;
    const Borrowed filtered = EvaluateFilters(*node.filter, *text, scratch);
    if (filtered == nullptr) return Flow::kFailed;
    text = TemplateValue(*filtered);
  }
  return Assign(node.target, *std::move(text)) ? Flow::kNext : Flow::kFailed;
}

Interpreter::Flow Interpreter::RunNode(const FilterBlockStatement& node, uint32_t line) {
  Enter(node.entry);
  Flow flow = Flow::kNext;
  const std::optional<TemplateValue> text = Capture(node.body, flow);
  if (!text || flow != Flow::kNext) return flow;
  TemplateValue scratch;
  const Borrowed filtered = EvaluateFilters(*node.filter, *text, scratch);
  return filtered != nullptr && PrintValue(*filtered, line) ? Flow::kNext : Flow::kFailed;
}

Interpreter::Flow Interpreter::RunNode(const WithStatement& node, uint32_t) {
  // None of the values sees the new names.
  std::vector<TemplateValue> values;
  for (const auto& [target, expression] : node.values) {
    std::optional<TemplateValue> value = EvaluateCopy(*expression);
    if (!value) return Flow::kFailed;
    values.push_back(*std::move(value));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!Assign(node.values[i].first, std::move(values[i]))) return Flow::kFailed;
  }
  Enter(node.entry);
  return Run(node.body);
}

Interpreter::Flow Interpreter::RunNode(const ScopeStatement& node, uint32_t) {
  Enter(node.entry);
  return Run(node.body);
}

Interpreter::Flow Interpreter::RunNode(const MacroStatement& node, uint32_t) {
  At(node.place) = MakeFunction(*node.function);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::RunNode(const CallBlockStatement& node, uint32_t line) {
  const Call& call = std::get<Call>(node.call->node);
  const std::optional<TemplateValue> callee = EvaluateCopy(*call.callee);
  if (!callee) return Flow::kFailed;
  std::optional<Arguments> arguments = EvaluateArguments(call.arguments, line);
  if (!arguments) return Flow::kFailed;
  arguments->keywords.emplace_back("caller", MakeFunction(*node.caller));
  TemplateValue scratch;
  const Borrowed value = CallValue(*callee, *arguments, *node.call, scratch);
  return value != nullptr && PrintValue(*value, line) ? Flow::kNext : Flow::kFailed;
}

Interpreter::Flow Interpreter::RunNode(const BreakStatement&, uint32_t) { return Flow::kBreak; }
Interpreter::Flow Interpreter::RunNode(const ContinueStatement&, uint32_t) {
  return Flow::kContinue;
}

}  // namespace fathom
