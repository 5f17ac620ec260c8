#include "text/jinja/expression_parser.h"

#include <charconv>
#include <utility>

#include "text/jinja/expression_height.h"
#include "text/jinja/template.h"

namespace fathom {
namespace {

Expressions ListOf(ExpressionPtr first, ExpressionPtr second) {
  Expressions list;
  list.push_back(std::move(first));
  list.push_back(std::move(second));
  return list;
}

std::optional<Comparator> ComparatorOf(const Token& token) {
  constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  for (size_t i = 0; i < std::size(kSigns); ++i) {
    if (token.text == kSigns[i]) return static_cast<Comparator>(i);
  }
  return std::nullopt;
}

std::optional<BinaryOperator> ProductOperator(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "*") return BinaryOperator::kMultiply;
  if (token.text == "/") return BinaryOperator::kDivide;
  if (token.text == "//") return BinaryOperator::kFloorDivide;
  if (token.text == "%") return BinaryOperator::kModulo;
  return std::nullopt;
}

}  // namespace

Result<> ExpressionParser::CheckDepth(uint32_t depth, uint32_t line) {
  if (depth <= Template::kMaxDepth) return {};
  return Fail(Blame::kCaller, "line {}: nested more than {} deep", line, Template::kMaxDepth);
}

Result<ExpressionPtr> ExpressionParser::Make(Expression::Node node, uint32_t line,
                                             uint32_t height) {
  TRY_VOID(CheckDepth(height + 1, line));
  return std::make_unique<Expression>(std::move(node), line, height + 1);
}

Result<ExpressionPtr> ExpressionParser::Parse() { return ParseConditional(); }

Result<ExpressionPtr> ExpressionParser::ParseTuple(bool conditional) {
  const uint32_t line = tokens_.line();
  const auto at_end = [this] {
    return tokens_.Is(TokenKind::kPrintEnd) || tokens_.Is(TokenKind::kStatementEnd) ||
           tokens_.IsOperator(")") || tokens_.IsName("recursive");
  };
  TRY(ExpressionPtr first, conditional ? ParseConditional() : ParseOr());
  if (!tokens_.IsOperator(",")) return first;
  SequenceLiteral tuple{{}, SequenceKind::kTuple};
  tuple.items.push_back(std::move(first));
  while (tokens_.SkipOperator(",") && !at_end()) {
    TRY(ExpressionPtr item, conditional ? ParseConditional() : ParseOr());
    tuple.items.push_back(std::move(item));
  }
  const uint32_t height = HeightOf(tuple.items);
  return Make(std::move(tuple), line, height);
}

Result<ExpressionPtr> ExpressionParser::ParseConditional() {
  const Descent descent(depth_);
  TRY_VOID(CheckDepth(depth_, tokens_.line()));
  const std::optional<Error> unknown_before = unknown_;
  TRY(ExpressionPtr value, ParseOr());
  while (tokens_.IsName("if")) {
    const uint32_t line = tokens_.Take().line;
    TRY(ExpressionPtr test, ParseOr());
    ExpressionPtr no;
    if (tokens_.SkipName("else")) {
      TRY(no, ParseConditional());
    }
    unknown_ = unknown_before;  // all of it was a branch
    const uint32_t height = HeightOf(test, value, no);
    TRY(value, Make(Conditional{std::move(test), std::move(value), std::move(no)}, line, height));
  }
  return value;
}

Result<ExpressionPtr> ExpressionParser::ParseOr() {
  TRY(ExpressionPtr left, ParseAnd());
  if (!tokens_.IsName("or")) return left;
  const uint32_t line = tokens_.line();
  Logical logical{.is_and = false, .operands = {}};
  logical.operands.push_back(std::move(left));
  while (tokens_.SkipName("or")) {
    TRY(ExpressionPtr operand, ParseAnd());
    logical.operands.push_back(std::move(operand));
  }
  const uint32_t height = HeightOf(logical.operands);
  return Make(std::move(logical), line, height);
}

Result<ExpressionPtr> ExpressionParser::ParseAnd() {
  TRY(ExpressionPtr left, ParseNot());
  if (!tokens_.IsName("and")) return left;
  const uint32_t line = tokens_.line();
  Logical logical{.is_and = true, .operands = {}};
  logical.operands.push_back(std::move(left));
  while (tokens_.SkipName("and")) {
    TRY(ExpressionPtr operand, ParseNot());
    logical.operands.push_back(std::move(operand));
  }
  const uint32_t height = HeightOf(logical.operands);
  return Make(std::move(logical), line, height);
}

Result<ExpressionPtr> ExpressionParser::ParseNot() {
  if (!tokens_.IsName("not")) return ParseComparison();
  const Descent descent(depth_);
  TRY_VOID(CheckDepth(depth_, tokens_.line()));
  const uint32_t line = tokens_.Take().line;
  TRY(ExpressionPtr operand, ParseNot());
  const uint32_t height = HeightOf(operand);
  return Make(Unary{UnaryOperator::kNot, std::move(operand)}, line, height);
}

Result<ExpressionPtr> ExpressionParser::ParseComparison() {
  const uint32_t line = tokens_.line();
  TRY(ExpressionPtr first, ParseSum());
  Comparison comparison{std::move(first), {}};
  uint32_t height = HeightOf(comparison.first);
  while (true) {
    std::optional<Comparator> comparator = ComparatorOf(tokens_.current());
    if (tokens_.IsName("in")) comparator = Comparator::kIn;
    if (tokens_.IsName("not") && tokens_.next().kind == TokenKind::kName &&
        tokens_.next().text == "in") {
      comparator = Comparator::kNotIn;
      tokens_.Take();
    }
    if (!comparator) break;
    tokens_.Take();
    TRY(ExpressionPtr other, ParseSum());
    height = std::max(height, HeightOf(other));
    comparison.others.emplace_back(*comparator, std::move(other));
  }
  if (comparison.others.empty()) return std::move(comparison.first);
  return Make(std::move(comparison), line, height);
}

// A run of plus signs is one node: long texts are put together from many pieces.
Result<ExpressionPtr> ExpressionParser::ParseSum() {
  TRY(ExpressionPtr left, ParseConcatenation());
  while (tokens_.IsOperator("+") || tokens_.IsOperator("-")) {
    const Token sign = tokens_.Take();
    TRY(ExpressionPtr right, ParseConcatenation());
    const uint32_t height = HeightOf(left, right);
    if (sign.text == "-") {
      TRY(left, Make(Binary{BinaryOperator::kSubtract, std::move(left), std::move(right)},
                     sign.line, height));
      continue;
    }
    Sum sum{ListOf(std::move(left), std::move(right))};
    uint32_t tallest = height;
    while (tokens_.SkipOperator("+")) {
      TRY(ExpressionPtr term, ParseConcatenation());
      tallest = std::max(tallest, HeightOf(term));
      sum.terms.push_back(std::move(term));
    }
    TRY(left, Make(std::move(sum), sign.line, tallest));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::ParseConcatenation() {
  TRY(ExpressionPtr first, ParseProduct());
  if (!tokens_.IsOperator("~")) return first;
  const uint32_t line = tokens_.line();
  Concatenation concatenation;
  concatenation.parts.push_back(std::move(first));
  while (tokens_.SkipOperator("~")) {
    TRY(ExpressionPtr part, ParseProduct());
    concatenation.parts.push_back(std::move(part));
  }
  const uint32_t height = HeightOf(concatenation.parts);
  return Make(std::move(concatenation), line, height);
}

Result<ExpressionPtr> ExpressionParser::ParseProduct() {
  TRY(ExpressionPtr left, ParsePower());
  while (const std::optional<BinaryOperator> op = ProductOperator(tokens_.current())) {
    const uint32_t line = tokens_.Take().line;
    TRY(ExpressionPtr right, ParsePower());
    const uint32_t height = HeightOf(left, right);
    TRY(left, Make(Binary{*op, std::move(left), std::move(right)}, line, height));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::ParsePower() {
  TRY(ExpressionPtr left, ParseUnary(true));
  while (tokens_.IsOperator("**")) {
    const uint32_t line = tokens_.Take().line;
    TRY(ExpressionPtr right, ParseUnary(true));
    const uint32_t height = HeightOf(left, right);
    TRY(left,
        Make(Binary{BinaryOperator::kPower, std::move(left), std::move(right)}, line, height));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::ParseUnary(bool filters) {
  ExpressionPtr value;
  if (tokens_.IsOperator("-") || tokens_.IsOperator("+")) {
    const Descent descent(depth_);
    TRY_VOID(CheckDepth(depth_, tokens_.line()));
    const Token sign = tokens_.Take();
    TRY(ExpressionPtr operand, ParseUnary(false));
    const uint32_t height = HeightOf(operand);
    const UnaryOperator op = sign.text == "-" ? UnaryOperator::kNegative : UnaryOperator::kPositive;
    TRY(value, Make(Unary{op, std::move(operand)}, sign.line, height));
  } else {
    TRY(value, ParsePrimary());
  }
  TRY(value, ParsePostfix(std::move(value)));
  return filters ? ParseFiltersAndTests(std::move(value)) : std::move(value);
}

}  // namespace fathom
