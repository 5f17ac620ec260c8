// A template as a tree: what the parser makes and the interpreter walks.
//
// Names are numbers into a table of the program; the name_resolver turns each use into the place
// where the value will be.
//
// Threads  Immutable once parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/object.h"
#include "text/jinja/value.h"

namespace fathom {

struct Filter;
struct Predicate;
struct MethodName;

using NameId = uint32_t;

// Where the value of a name is: a slot of the running macro (0 hops) or of one around it, or among
// the values that the render was given.
struct SourcePlace {
  static constexpr uint32_t kGlobal = 0xffffffff;

  uint32_t hops = kGlobal;
  uint32_t index = 0;  // of the slot, or the NameId

  bool global() const { return hops == kGlobal; }
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
using Expressions = std::vector<ExpressionPtr>;

struct ArgumentList {
  Expressions positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;
  ExpressionPtr more_positional;  // *list
  ExpressionPtr more_keywords;    // **dict
};

struct Literal {
  TemplateValue value;
};
struct NameUse {
  NameId name;
  SourcePlace place;
};
struct SequenceLiteral {
  Expressions items;
  SequenceKind kind;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> members;
};
enum class UnaryOperator : uint8_t { kNot, kNegative, kPositive };
struct Unary {
  UnaryOperator op;
  ExpressionPtr operand;
};
enum class BinaryOperator : uint8_t {
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower
};
struct Binary {
  BinaryOperator op;
  ExpressionPtr left;
  ExpressionPtr right;
};
// a + b + c, from the left.
struct Sum {
  Expressions terms;
};
// a ~ b ~ c
struct Concatenation {
  Expressions parts;
};
// a and b and c, or the same with `or`.
struct Logical {
  bool is_and;
  Expressions operands;
};
enum class Comparator : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};
// a < b < c
struct Comparison {
  ExpressionPtr first;
  std::vector<std::pair<Comparator, ExpressionPtr>> others;
};
struct Conditional {
  ExpressionPtr test;
  ExpressionPtr yes;
  ExpressionPtr no;  // may be missing
};
struct Attribute {
  ExpressionPtr object;
  const MethodName* name;
};
struct Item {
  ExpressionPtr object;
  ExpressionPtr key;
  const MethodName* name;  // of a key that is a text and written out; else nullptr
};
struct Slice {
  ExpressionPtr object;
  ExpressionPtr start;  // each may be missing
  ExpressionPtr stop;
  ExpressionPtr step;
};
struct Call {
  ExpressionPtr callee;
  ArgumentList arguments;
};
struct FilterUse {
  ExpressionPtr input;   // missing: the text of a block
  const Filter* filter;  // nullptr: there is none of that name, which fails when it is reached
  ArgumentList arguments;
  std::string unknown = {};
};
struct TestUse {
  ExpressionPtr input;
  const Predicate* test;  // as above
  ArgumentList arguments;
  std::string unknown = {};
};

struct Expression {
  using Node = std::variant<Literal, NameUse, SequenceLiteral, DictLiteral, Unary, Binary, Sum,
                            Concatenation, Logical, Comparison, Conditional, Attribute, Item, Slice,
                            Call, FilterUse, TestUse>;

  Node node;
  uint32_t line;
  uint32_t height;  // of the tree below, itself included
};

// What can stand before an equals sign: a name, an attribute of a namespace, or several of them.
struct Target {
  NameId name = 0;
  SourcePlace place;
  std::optional<std::string> attribute;
  std::vector<Target> parts;  // not empty: the others mean nothing
  bool is_tuple = false;
  uint32_t line = 0;
};

struct Statement;
using Block = std::vector<Statement>;

// A slot that gets a value whenever its scope is entered.
struct SlotStart {
  uint32_t slot;
  std::optional<SourcePlace> from;  // missing: undefined
};
using ScopeEntry = std::vector<SlotStart>;

// What runs with slots of its own: the template, a macro, the body of a call block.
struct Function {
  struct Parameter {
    NameId name;
    std::string text;
    uint32_t slot = 0;
    ExpressionPtr fallback;  // may be missing
  };

  std::string name;
  std::vector<Parameter> parameters;
  std::optional<uint32_t> caller;  // the slots of these names, where the body uses them
  std::optional<uint32_t> varargs;
  std::optional<uint32_t> kwargs;
  Block body;
  ScopeEntry entry;
  uint32_t slots = 0;
  uint32_t height = 0;  // of the tallest expression and the blocks around it
};

struct TextOutput {
  std::string text;
};
struct ValueOutput {
  ExpressionPtr value;
};
struct IfStatement {
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  Block otherwise;
};
struct ForStatement {
  Target target;
  ExpressionPtr items;
  ExpressionPtr test;  // may be missing; it has slots of its own for the target
  Target test_target;
  uint32_t loop_slot = 0;
  Block body;
  ScopeEntry entry;
  Block otherwise;
  ScopeEntry otherwise_entry;
};
struct SetStatement {
  Target target;
  ExpressionPtr value;
};
struct SetBlockStatement {
  Target target;
  ExpressionPtr filter;  // a chain of FilterUse whose innermost has no input; may be missing
  Block body;
  ScopeEntry entry;
};
struct FilterBlockStatement {
  ExpressionPtr filter;
  Block body;
  ScopeEntry entry;
};
struct WithStatement {
  std::vector<std::pair<Target, ExpressionPtr>> values;
  Block body;
  ScopeEntry entry;
};
// {% generation %}: a scope, and nothing else.
struct ScopeStatement {
  Block body;
  ScopeEntry entry;
};
struct MacroStatement {
  NameId name;
  SourcePlace place;
  std::unique_ptr<Function> function;
};
struct CallBlockStatement {
  ExpressionPtr call;
  std::unique_ptr<Function> caller;
};
struct BreakStatement {};
struct ContinueStatement {};

struct Statement {
  using Node = std::variant<TextOutput, ValueOutput, IfStatement, ForStatement, SetStatement,
                            SetBlockStatement, FilterBlockStatement, WithStatement, ScopeStatement,
                            MacroStatement, CallBlockStatement, BreakStatement, ContinueStatement>;

  Node node;
  uint32_t line;
};

}  // namespace fathom
