#include <algorithm>
#include <utility>

#include "text/jinja/attribute.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/markup.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_text.h"
#include "text/jinja/strftime.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// Of the trees of all functions that run: what keeps the machine's stack small.
constexpr uint32_t kMaxHeight = 1500;
// As jinja2's sandbox has it.
constexpr int64_t kMaxRange = 100'000;
// Of the words of raise_exception.
constexpr size_t kMaxWords = 1000;

Result<TemplateValue> Range(const Arguments& arguments, RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"start", "stop", "step"}, 1));
  TRY(const int64_t first, IntegerOr(bound[0], 0));
  TRY(const int64_t second, IntegerOr(bound[1], 0));
  TRY(const int64_t step, IntegerOr(bound[2], 1));
  const __int128 start = bound[1] == nullptr ? 0 : first;
  const __int128 stop = bound[1] == nullptr ? first : second;
  if (step == 0) return Fail(Blame::kCaller, "a range with steps of zero");
  const __int128 distance = step > 0 ? stop - start : start - stop;
  const __int128 stride = step > 0 ? step : -static_cast<__int128>(step);
  const __int128 count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  if (count > kMaxRange) return Fail(Blame::kCaller, "a range of more than {} numbers", kMaxRange);
  TemplateList items;
  if (!budget.Spend(static_cast<uint64_t>(count))) return TemplateValue();
  for (__int128 i = 0; i < count; ++i) items.emplace_back(static_cast<int64_t>(start + i * step));
  return TemplateValue(std::move(items), SequenceKind::kRange);
}

Result<TemplateDict> Members(const Arguments& arguments, RenderBudget& budget) {
  if (arguments.positional.size() > 1) return Fail(Blame::kCaller, "expected one dict");
  TemplateDict members;
  if (!arguments.positional.empty()) {
    const TemplateDict* given = arguments.positional.front().dict();
    if (given == nullptr) return Fail(Blame::kCaller, "expected a dict");
    if (!budget.Spend(given->size())) return members;
    members = *given;
  }
  for (const auto& [name, value] : arguments.keywords) {
    if (!budget.Spend(1 + members.size() / 8)) break;
    SetMember(members, name, value);
  }
  return members;
}

// On one line, and not too long.
std::string OneLine(std::string_view words) {
  size_t end = 0;
  while (end < words.size() && end < kMaxWords) end += FirstCodePoint(words.substr(end)).length;
  std::string line(words.substr(0, end));
  std::ranges::replace_if(line, [](char c) { return static_cast<uint8_t>(c) < 0x20; }, ' ');
  return line;
}

}  // namespace

std::optional<Arguments> Interpreter::EvaluateArguments(const ArgumentList& list, uint32_t line) {
  Arguments arguments;
  arguments.positional.reserve(list.positional.size());
  for (const ExpressionPtr& expression : list.positional) {
    std::optional<TemplateValue> value = EvaluateCopy(*expression);
    if (!value) return std::nullopt;
    arguments.positional.push_back(*std::move(value));
  }
  for (const auto& [name, expression] : list.keywords) {
    std::optional<TemplateValue> value = EvaluateCopy(*expression);
    if (!value) return std::nullopt;
    arguments.keywords.emplace_back(name, *std::move(value));
  }
  if (list.more_positional != nullptr) {
    const std::optional<TemplateValue> more = EvaluateCopy(*list.more_positional);
    if (!more) return std::nullopt;
    Result<TemplateValue> items = Items(*more, budget_);
    if (!items) return Fails(line, std::move(items).error()), std::nullopt;
    const TemplateList& values = items->sequence()->items;
    if (!budget_.Spend(values.size())) return Fails(0, budget_.error()), std::nullopt;
    arguments.positional.insert(arguments.positional.end(), values.begin(), values.end());
  }
  if (list.more_keywords != nullptr) {
    const std::optional<TemplateValue> more = EvaluateCopy(*list.more_keywords);
    if (!more) return std::nullopt;
    if (more->dict() == nullptr)
      return Fails(line, {Blame::kCaller, "expected a dict"}), std::nullopt;
    if (!budget_.Spend(more->dict()->size())) return Fails(0, budget_.error()), std::nullopt;
    for (const auto& [name, value] : *more->dict()) {
      if (!KeyValue(name).is_text()) {
        return Fails(line, {Blame::kCaller, "keywords must be texts"}), std::nullopt;
      }
      arguments.keywords.emplace_back(name, value);
    }
  }
  return arguments;
}

Interpreter::Borrowed Interpreter::EvaluateNode(const Call& node, const Expression& expression,
                                                TemplateValue& scratch) {
  const Attribute* attribute = std::get_if<Attribute>(&node.callee->node);
  TemplateValue lent;
  const Borrowed object = Evaluate(attribute != nullptr ? *attribute->object : *node.callee, lent);
  if (object == nullptr) return nullptr;
  const std::optional<Arguments> arguments = EvaluateArguments(node.arguments, expression.line);
  if (!arguments) return nullptr;
  if (attribute == nullptr) return CallValue(*object, *arguments, expression, scratch);
  const MethodName& name = *attribute->name;
  if (const Method* method = name.For(*object)) {
    auto result = RunMethod(*method, *object, *arguments, budget_);
    if (!result)
      result = std::unexpected(std::move(result).error().In(fmt::format("method '{}'", name.name)));
    return Take(expression.line, std::move(result), scratch);
  }
  if (object->is_undefined()) {
    Fails(expression.line, UndefinedError(*attribute->object));
    return nullptr;
  }
  if (TemplateLoop* loop = object->loop()) {
    return CallLoop(*loop, name.of_loop, *arguments, expression.line, scratch);
  }
  TemplateValue callee_lent;
  const Borrowed callee = Take(expression.line, GetAttribute(*object, name, budget_), callee_lent);
  return callee == nullptr ? nullptr : CallValue(*callee, *arguments, expression, scratch);
}

Interpreter::Borrowed Interpreter::CallValue(const TemplateValue& callee,
                                             const Arguments& arguments, const Expression& call,
                                             TemplateValue& scratch) {
  const TemplateCallable* callable = callee.callable();
  if (callable == nullptr) {
    const Expression& name = *std::get<Call>(call.node).callee;
    const Error error =
        callee.is_undefined()
            ? UndefinedError(name)
            : Error{Blame::kCaller, fmt::format("{} cannot be called", TypeName(callee))};
    Fails(call.line, error);
    return nullptr;
  }
  if (callable->function != nullptr) return CallFunction(*callable, arguments, call.line, scratch);
  if (callable->method != nullptr) {
    return Take(call.line, RunMethod(*callable->method, callable->receiver, arguments, budget_),
                scratch);
  }
  const bool refuses = callable->builtin == Builtin::kRaiseException;
  Result<TemplateValue> result = CallBuiltin(*callable->builtin, arguments);
  return Take(refuses ? 0 : call.line, std::move(result), scratch);
}

TemplateValue Interpreter::MakeFunction(const Function& function) const {
  auto callable = std::make_shared<TemplateCallable>();
  callable->function = &function;
  callable->outer = running_ - 1;
  callable->outer_serial = activation_->serial;
  return TemplateValue(std::shared_ptr<const TemplateCallable>(std::move(callable)));
}

Interpreter::Borrowed Interpreter::CallFunction(const TemplateCallable& callee,
                                                const Arguments& arguments, uint32_t line,
                                                TemplateValue& scratch) {
  const Function& function = *callee.function;
  if (callee.outer >= running_ || activations_[callee.outer].serial != callee.outer_serial) {
    Fails(line, {Blame::kCaller, "a macro outlived the one that it was defined in"});
    return nullptr;
  }
  const uint32_t height = activation_->height + function.height + 1;
  if (running_ > budget_.limits().depth || height > kMaxHeight) {
    Fails(line, {Blame::kCaller, fmt::format("macros are nested more than {} deep", running_ - 1)});
    return nullptr;
  }
  if (running_ == activations_.size()) activations_.emplace_back();
  Activation* const caller = std::exchange(activation_, &activations_[running_++]);
  activation_->slots.assign(function.slots, TemplateValue());
  activation_->outer = callee.outer;
  activation_->serial = ++last_serial_;
  activation_->height = height;
  Flow flow = Flow::kFailed;
  std::optional<TemplateValue> text;
  if (BindParameters(function, arguments, line)) {
    Enter(function.entry);
    text = Capture(function.body, flow);
  }
  activation_->slots.clear();
  activation_ = caller;
  --running_;
  if (!text) return nullptr;
  scratch = *std::move(text);
  return &scratch;
}

bool Interpreter::BindParameters(const Function& function, const Arguments& arguments,
                                 uint32_t line) {
  const auto& parameters = function.parameters;
  const size_t given = std::min(arguments.positional.size(), parameters.size());
  std::vector<bool> bound(parameters.size(), false);
  for (size_t i = 0; i < given; ++i) {
    Slot(parameters[i].slot) = arguments.positional[i];
    bound[i] = true;
  }
  TemplateDict kwargs;
  for (const auto& [name, value] : arguments.keywords) {
    const auto found = std::ranges::find(parameters, name, &Function::Parameter::text);
    const auto index = static_cast<size_t>(found - parameters.begin());
    if (found != parameters.end() && !bound[index]) {
      Slot(found->slot) = value;
      bound[index] = true;
    } else if (name == "caller" && function.caller) {
      Slot(*function.caller) = value;
    } else if (function.kwargs) {
      SetMember(kwargs, name, value);
    } else {
      return Fails(line,
                   {Blame::kCaller, fmt::format("macro '{}' has no such argument", function.name)});
    }
  }
  if (function.kwargs) Slot(*function.kwargs) = TemplateValue(std::move(kwargs));
  if (function.varargs) {
    const auto rest = arguments.positional.begin() + static_cast<ptrdiff_t>(given);
    Slot(*function.varargs) =
        TemplateValue(TemplateList(rest, arguments.positional.end()), SequenceKind::kTuple);
  } else if (arguments.positional.size() > parameters.size()) {
    return Fails(line, {Blame::kCaller, fmt::format("macro '{}' takes {} arguments", function.name,
                                                    parameters.size())});
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (bound[i] || parameters[i].fallback == nullptr) continue;
    std::optional<TemplateValue> value = EvaluateCopy(*parameters[i].fallback);
    if (!value) return false;
    Slot(parameters[i].slot) = *std::move(value);
  }
  return true;
}

Result<TemplateValue> Interpreter::MakeNamespace(const Arguments& arguments) {
  auto name_space = std::make_shared<TemplateNamespace>();
  TRY(name_space->attributes, Members(arguments, budget_));
  namespaces_.push_back(name_space);
  return TemplateValue(std::move(name_space));
}

Result<TemplateValue> Interpreter::CallBuiltin(Builtin builtin, const Arguments& arguments) {
  switch (builtin) {
    case Builtin::kRange:
      return Range(arguments, budget_);
    case Builtin::kNamespace:
      return MakeNamespace(arguments);
    case Builtin::kDict: {
      TRY(TemplateDict members, Members(arguments, budget_));
      return Nested(TemplateValue(std::move(members)));
    }
    case Builtin::kStrftimeNow: {
      TRY(const auto bound, Bind(arguments, {"format"}, 1));
      TRY(const std::string_view format, TextOr(bound[0], ""));
      TRY(std::string text, FormatTime(format, now_));
      return TemplateValue(std::move(text));
    }
    case Builtin::kRaiseException:
      break;
  }
  TRY(const auto bound, Bind(arguments, {"message"}, 1));
  TRY(const TemplateValue words, Str(*bound[0], budget_));
  refused_ = true;
  return Fail(Blame::kCaller, "the template raised an error: {}", OneLine(*words.text()));
}

}  // namespace fathom
