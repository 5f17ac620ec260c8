#include <utility>

#include "text/jinja/interpreter.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_text.h"

namespace fathom {

// The next item that passes the loop's own test.
Interpreter::Fetched Interpreter::FetchNext(TemplateLoop& loop, TemplateValue& out) {
  const TemplateList& items = loop.items.sequence()->items;
  const ForStatement& statement = *loop.statement;
  while (loop.next < items.size()) {
    if (!Step()) return Fetched::kFailed;
    const TemplateValue& item = items[loop.next++];
    if (statement.test != nullptr && !loop.tested) {
      if (!Assign(statement.test_target, item)) return Fetched::kFailed;
      const std::optional<bool> passes = EvaluateTruth(*statement.test);
      if (!passes) return Fetched::kFailed;
      if (!*passes) continue;
    }
    out = item;
    return Fetched::kItem;
  }
  return Fetched::kNone;
}

Interpreter::Fetched Interpreter::PeekNext(TemplateLoop& loop) {
  if (loop.after) return Fetched::kItem;
  TemplateValue item;
  const Fetched fetched = FetchNext(loop, item);
  if (fetched == Fetched::kItem) loop.after = std::move(item);
  return fetched;
}

// Of a loop with a test, all that is left is tested at once, as jinja2 does it.
std::optional<int64_t> Interpreter::LoopLength(TemplateLoop& loop) {
  if (loop.length) return loop.length;
  if (loop.statement->test == nullptr) {
    loop.length = static_cast<int64_t>(loop.items.sequence()->items.size());
    return loop.length;
  }
  TemplateList rest;
  TemplateValue item;
  Fetched fetched = FetchNext(loop, item);
  for (; fetched == Fetched::kItem; fetched = FetchNext(loop, item)) rest.push_back(item);
  if (fetched == Fetched::kFailed) return std::nullopt;
  loop.length = static_cast<int64_t>(rest.size()) + loop.index0 + 1 + (loop.after ? 1 : 0);
  loop.items = TemplateValue(std::move(rest));
  loop.next = 0;
  loop.tested = true;
  return loop.length;
}

Interpreter::Borrowed Interpreter::GetLoopAttribute(TemplateLoop& loop, LoopAttribute attribute,
                                                    TemplateValue& scratch) {
  switch (attribute) {
    case LoopAttribute::kIndex:
      scratch = TemplateValue(loop.index0 + 1);
      return &scratch;
    case LoopAttribute::kIndex0:
      scratch = TemplateValue(loop.index0);
      return &scratch;
    case LoopAttribute::kFirst:
      scratch = TemplateValue(loop.index0 == 0);
      return &scratch;
    case LoopAttribute::kDepth:
      scratch = TemplateValue(1);
      return &scratch;
    case LoopAttribute::kDepth0:
      scratch = TemplateValue(0);
      return &scratch;
    case LoopAttribute::kPreviousItem:
      scratch = loop.before;
      return &scratch;
    case LoopAttribute::kLast:
    case LoopAttribute::kNextItem: {
      const Fetched next = PeekNext(loop);
      if (next == Fetched::kFailed) return nullptr;
      const bool last = next == Fetched::kNone;
      scratch = attribute == LoopAttribute::kLast ? TemplateValue(last)
                                                  : loop.after.value_or(TemplateValue());
      return &scratch;
    }
    case LoopAttribute::kLength:
    case LoopAttribute::kReverseIndex:
    case LoopAttribute::kReverseIndex0: {
      const std::optional<int64_t> length = LoopLength(loop);
      if (!length) return nullptr;
      const int64_t passed = attribute == LoopAttribute::kLength         ? 0
                             : attribute == LoopAttribute::kReverseIndex ? loop.index0
                                                                         : loop.index0 + 1;
      scratch = TemplateValue(*length - passed);
      return &scratch;
    }
    default:
      scratch = TemplateValue();
      return &scratch;
  }
}

// loop.cycle('a', 'b') and loop.changed(value).
Interpreter::Borrowed Interpreter::CallLoop(TemplateLoop& loop, LoopAttribute attribute,
                                            const Arguments& arguments, uint32_t line,
                                            TemplateValue& scratch) {
  const auto& values = arguments.positional;
  if (attribute == LoopAttribute::kCycle && !values.empty()) {
    scratch = values[static_cast<size_t>(loop.index0) % values.size()];
    return &scratch;
  }
  if (attribute == LoopAttribute::kChanged) {
    TemplateValue now(TemplateList(values), SequenceKind::kTuple);
    const bool changed = !loop.last_changed || !Equals(*loop.last_changed, now, budget_);
    if (changed) loop.last_changed = std::move(now);
    scratch = TemplateValue(changed);
    return &scratch;
  }
  Fails(line, {Blame::kCaller, "a wrong call of a loop"});
  return nullptr;
}

Interpreter::Flow Interpreter::RunLoop(const ForStatement& statement, TemplateLoop& loop,
                                       bool& ran) {
  while (true) {
    const Fetched fetched = PeekNext(loop);
    if (fetched == Fetched::kFailed) return Flow::kFailed;
    if (fetched == Fetched::kNone) return Flow::kNext;
    loop.before = std::exchange(loop.current, *std::exchange(loop.after, std::nullopt));
    ++loop.index0;
    if (!Assign(statement.target, loop.current)) return Flow::kFailed;
    Enter(statement.entry);
    const Flow flow = Run(statement.body);
    if (flow == Flow::kFailed) return flow;
    if (flow == Flow::kBreak) return Flow::kNext;
    // Only a turn that came to its end keeps jinja2 from the else branch.
    if (flow == Flow::kNext) ran = true;
  }
}

Interpreter::Flow Interpreter::RunNode(const ForStatement& node, uint32_t line) {
  TemplateValue lent;
  const Borrowed iterated = Evaluate(*node.items, lent);
  if (iterated == nullptr) return Flow::kFailed;
  Result<TemplateValue> items = Items(*iterated, budget_);
  if (!items) {
    Fails(line, std::move(items).error());
    return Flow::kFailed;
  }
  const auto loop = std::make_shared<TemplateLoop>();
  loop->items = *std::move(items);
  loop->statement = &node;
  Slot(node.loop_slot) = TemplateValue(loop);
  bool ran = false;
  const Flow flow = RunLoop(node, *loop, ran);
  // What it was compared with last may hold the loop itself.
  loop->last_changed.reset();
  Slot(node.loop_slot) = TemplateValue();
  if (flow != Flow::kNext || ran || node.otherwise.empty()) return flow;
  Enter(node.otherwise_entry);
  return Run(node.otherwise);
}

}  // namespace fathom
