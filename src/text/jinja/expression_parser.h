// Tokens to expressions, with jinja2's grammar: what binds tighter is parsed further down.
//
// Errors  kCaller, with the line; also for filters, tests and methods that are not known.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/result.h"
#include "text/jinja/syntax.h"
#include "text/jinja/token_stream.h"

namespace fathom {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // One expression, or several with commas between them: a tuple. `conditional`: whether it may
  // have an `if` of its own.
  Result<ExpressionPtr> ParseTuple(bool conditional);
  Result<ExpressionPtr> Parse();
  // | filter | filter, behind `input`, which may be missing. Where there is no bar: `input`.
  Result<ExpressionPtr> ParseFilters(ExpressionPtr input);
  // The same where the first one has no bar.
  Result<ExpressionPtr> ParseFilterChain();
  // What stands before `=` or `in`. `attributes`: may be an attribute of a namespace.
  Result<Target> ParseTarget(bool attributes);

  // The first filter, test or method that is not known, outside of all branches. Inside of one it
  // is an error only once the branch is taken, as in jinja2.
  const std::optional<Error>& unknown() const { return unknown_; }
  // Parses branches from now on, or no longer.
  void EnterBranch() { ++branches_; }
  void LeaveBranch() { --branches_; }

  // Of expressions in each other.
  static Result<> CheckDepth(uint32_t depth, uint32_t line);

 private:
  // Counts how deep the parser is in itself.
  class Descent {
   public:
    explicit Descent(uint32_t& depth) : depth_(depth) { ++depth_; }
    ~Descent() { --depth_; }
    Descent(const Descent&) = delete;
    Descent& operator=(const Descent&) = delete;

   private:
    uint32_t& depth_;
  };

  Result<ExpressionPtr> ParseConditional();
  Result<ExpressionPtr> ParseOr();
  Result<ExpressionPtr> ParseAnd();
  Result<ExpressionPtr> ParseNot();
  Result<ExpressionPtr> ParseComparison();
  Result<ExpressionPtr> ParseSum();
  Result<ExpressionPtr> ParseConcatenation();
  Result<ExpressionPtr> ParseProduct();
  Result<ExpressionPtr> ParsePower();
  Result<ExpressionPtr> ParseUnary(bool filters);
  Result<ExpressionPtr> ParsePrimary();
  Result<ExpressionPtr> ParseNameOrConstant();
  Result<ExpressionPtr> ParseParentheses();
  Result<ExpressionPtr> ParseList();
  Result<ExpressionPtr> ParseDict();
  Result<ExpressionPtr> ParsePostfix(ExpressionPtr value);
  Result<ExpressionPtr> ParseFiltersAndTests(ExpressionPtr value);
  Result<ExpressionPtr> ParseDot(ExpressionPtr value);
  Result<ExpressionPtr> ParseBrackets(ExpressionPtr value);
  Result<ExpressionPtr> ParseCall(ExpressionPtr callee);
  Result<ExpressionPtr> ParseFilter(ExpressionPtr input);
  Result<ExpressionPtr> ParseTest(ExpressionPtr input);
  Result<ArgumentList> ParseArguments();
  Result<> ParseArgument(ArgumentList& list);
  Result<Target> ParseOneTarget(bool attributes);

  // `height` of the tallest part; fails above Template::kMaxDepth.
  Result<ExpressionPtr> Make(Expression::Node node, uint32_t line, uint32_t height);

  void NoteUnknown(std::unexpected<Error> unknown);

  TokenStream& tokens_;
  uint32_t depth_ = 0;     // of the parser's own recursion
  uint32_t branches_ = 0;  // in each other
  std::optional<Error> unknown_;
};

}  // namespace fathom
