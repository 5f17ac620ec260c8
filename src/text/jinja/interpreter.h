// Walks a template's tree and writes what it says.
//
// Values are borrowed where they lie (slots, globals, members of dicts) and copied only where they
// are kept: an expression is evaluated to a pointer, which may point into the scratch value that
// the caller lends. Nothing that an expression can call writes to a slot that is in use, so that
// the pointers hold as long as the expression does; what lies in a namespace is copied.
//
// Threads  Used by one render, once.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/jinja/arguments.h"
#include "text/jinja/method.h"
#include "text/jinja/name_table.h"
#include "text/jinja/object.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/syntax.h"
#include "text/jinja/template.h"
#include "text/jinja/value.h"

namespace fathom {

class Interpreter {
 public:
  Interpreter(const NameTable& names, const TemplateDict& globals, const RenderOptions& options);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  std::expected<std::string, RenderFailure> Run(const Function& root);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue, kFailed };

  // A function that runs.
  struct Activation {
    std::vector<TemplateValue> slots;
    size_t outer = 0;     // the one that its names are looked up in next
    uint64_t serial = 0;  // no two have the same
    uint32_t height = 0;  // of its tree and all below it
  };

  using Borrowed = const TemplateValue*;  // nullptr: error_ says why

  // expression_evaluator.cc
  Borrowed Evaluate(const Expression& expression, TemplateValue& scratch);
  std::optional<TemplateValue> EvaluateCopy(const Expression& expression);
  std::optional<bool> EvaluateTruth(const Expression& expression);
  Borrowed EvaluateNode(const Literal&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const NameUse&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const SequenceLiteral&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const DictLiteral&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Unary&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Binary&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Sum&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Concatenation&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Logical&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Comparison&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Conditional&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Attribute&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Item&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Slice&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const Call&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const FilterUse&, const Expression&, TemplateValue&);
  Borrowed EvaluateNode(const TestUse&, const Expression&, TemplateValue&);
  // The chain of filters of a block, whose innermost has `text` as its input.
  Borrowed EvaluateFilters(const Expression& chain, const TemplateValue& text,
                           TemplateValue& scratch);
  // The rest of a sum that begins with that.
  Borrowed AddTerms(const Sum& sum, const TemplateValue& first, uint32_t line,
                    TemplateValue& scratch);
  bool WriteTerms(const Sum& sum, const TemplateValue& first, uint32_t line, bool& markup);
  bool WriteTerm(const TemplateValue& term, size_t begin, bool& markup);
  Borrowed RefuseUnknown(std::string_view what, std::string_view name, uint32_t line);
  bool EvaluateBound(const ExpressionPtr& bound, std::optional<int64_t>& out);

  // calls.cc
  std::optional<Arguments> EvaluateArguments(const ArgumentList& list, uint32_t line);
  Borrowed CallValue(const TemplateValue& callee, const Arguments& arguments,
                     const Expression& call, TemplateValue& scratch);
  Borrowed CallFunction(const TemplateCallable& callee, const Arguments& arguments, uint32_t line,
                        TemplateValue& scratch);
  bool BindParameters(const Function& function, const Arguments& arguments, uint32_t line);
  Result<TemplateValue> CallBuiltin(Builtin builtin, const Arguments& arguments);
  Result<TemplateValue> MakeNamespace(const Arguments& arguments);
  TemplateValue MakeFunction(const Function& function) const;

  // loops.cc
  enum class Fetched : uint8_t { kItem, kNone, kFailed };
  Fetched FetchNext(TemplateLoop& loop, TemplateValue& out);
  Fetched PeekNext(TemplateLoop& loop);
  std::optional<int64_t> LoopLength(TemplateLoop& loop);
  Borrowed GetLoopAttribute(TemplateLoop& loop, LoopAttribute attribute, TemplateValue& scratch);
  Borrowed CallLoop(TemplateLoop& loop, LoopAttribute attribute, const Arguments& arguments,
                    uint32_t line, TemplateValue& scratch);
  Flow RunLoop(const ForStatement& statement, TemplateLoop& loop, bool& ran);

  // statement_runner.cc
  Flow Run(const Block& block);
  Flow RunNode(const TextOutput&, uint32_t line);
  Flow RunNode(const ValueOutput&, uint32_t line);
  Flow RunNode(const IfStatement&, uint32_t line);
  Flow RunNode(const ForStatement&, uint32_t line);
  Flow RunNode(const SetStatement&, uint32_t line);
  Flow RunNode(const SetBlockStatement&, uint32_t line);
  Flow RunNode(const FilterBlockStatement&, uint32_t line);
  Flow RunNode(const WithStatement&, uint32_t line);
  Flow RunNode(const ScopeStatement&, uint32_t line);
  Flow RunNode(const MacroStatement&, uint32_t line);
  Flow RunNode(const CallBlockStatement&, uint32_t line);
  Flow RunNode(const BreakStatement&, uint32_t line);
  Flow RunNode(const ContinueStatement&, uint32_t line);
  // Into a text of its own; nullopt: it failed.
  std::optional<TemplateValue> Capture(const Block& block, Flow& flow);
  bool Print(const Expression& value);
  bool PrintValue(const TemplateValue& value, uint32_t line);
  bool Write(std::string_view text);
  bool Assign(const Target& target, TemplateValue value);
  void Enter(const ScopeEntry& entry);

  TemplateValue& At(const SourcePlace& place);
  TemplateValue& Slot(uint32_t slot) { return activation_->slots[slot]; }

  bool Step() {
    if (budget_.Spend(1)) return true;
    return Fails(0, budget_.error());
  }
  RenderFailure Failure();
  // Always false. Line 0: it is already in the text, or means nothing.
  bool Fails(uint32_t line, Error error);
  // The value of a result, or nullptr.
  Borrowed Take(uint32_t line, Result<TemplateValue> result, TemplateValue& scratch);
  // "'x' is undefined", as far as the expression has a name.
  Error UndefinedError(const Expression& expression) const;

  const NameTable& names_;
  RenderBudget budget_;
  int64_t now_;
  std::vector<TemplateValue> globals_;  // by NameId
  std::deque<Activation> activations_;
  size_t running_ = 0;  // of activations_; those above it are kept for the next call
  Activation* activation_ = nullptr;
  uint64_t last_serial_ = 0;
  std::vector<std::shared_ptr<TemplateNamespace>> namespaces_;
  std::string* out_ = nullptr;
  Error error_{Blame::kCaller, ""};
  bool refused_ = false;  // by raise_exception
};

}  // namespace fathom
