#include "text/jinja/statement_parser.h"

#include <algorithm>
#include <utility>

#include "text/jinja/expression_height.h"

namespace fathom {
namespace {

bool IsOneOf(const TokenStream& tokens, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return tokens.IsName(name); });
}

bool Names(const Target& target, NameId name) {
  if (!target.is_tuple) return target.name == name;
  return std::ranges::any_of(target.parts, [&](const Target& part) { return Names(part, name); });
}

}  // namespace

Result<std::unique_ptr<Function>> StatementParser::Parse() {
  auto function = std::make_unique<Function>();
  TRY(function->body, ParseBlock({}));
  if (expressions_.unknown()) return std::unexpected(*expressions_.unknown());
  function->height = context_.height;
  return function;
}

Result<ExpressionPtr> StatementParser::Noted(Result<ExpressionPtr> expression) {
  if (expression)
    context_.height = std::max(context_.height, context_.depth + HeightOf(*expression));
  return expression;
}

Result<Block> StatementParser::ParseBlock(Ends ends) {
  ++context_.depth;
  TRY_VOID(ExpressionParser::CheckDepth(context_.depth, tokens_.line()));
  context_.height = std::max(context_.height, context_.depth);
  Block block;
  while (!tokens_.Is(TokenKind::kEnd)) {
    const uint32_t line = tokens_.line();
    if (tokens_.Is(TokenKind::kText)) {
      block.emplace_back(TextOutput{tokens_.Take().text}, line);
    } else if (tokens_.Is(TokenKind::kPrintBegin)) {
      TRY(Statement::Node print, ParsePrint());
      block.emplace_back(std::move(print), line);
    } else {
      tokens_.Take();
      if (IsOneOf(tokens_, ends)) {
        --context_.depth;
        return block;
      }
      TRY(Statement::Node statement, ParseStatement());
      TRY_VOID(tokens_.Expect(TokenKind::kStatementEnd, "the end of the statement"));
      block.emplace_back(std::move(statement), line);
    }
  }
  if (ends.size() > 0) return tokens_.Wrong("'{}' is missing", *(ends.end() - 1));
  --context_.depth;
  return block;
}

Result<Block> StatementParser::ParseBody(Ends ends) {
  tokens_.SkipOperator(":");
  TRY_VOID(tokens_.Expect(TokenKind::kStatementEnd, "the end of the statement"));
  return ParseBlock(ends);
}

Result<Block> StatementParser::ParseBodyAndEnd(std::string_view end) {
  TRY(Block body, ParseBody({end}));
  tokens_.Take();
  return body;
}

Result<Statement::Node> StatementParser::ParsePrint() {
  tokens_.Take();
  TRY(ExpressionPtr value, Noted(expressions_.ParseTuple(true)));
  TRY_VOID(tokens_.Expect(TokenKind::kPrintEnd, "'}}'"));
  return ValueOutput{std::move(value)};
}

Result<Statement::Node> StatementParser::ParseStatement() {
  if (tokens_.IsName("for")) return ParseFor();
  if (tokens_.IsName("if")) return ParseIf();
  if (tokens_.IsName("set")) return ParseSet();
  if (tokens_.IsName("macro")) return ParseMacro();
  if (tokens_.IsName("call")) return ParseCallBlock();
  if (tokens_.IsName("filter")) return ParseFilterBlock();
  if (tokens_.IsName("with")) return ParseWith();
  if (tokens_.IsName("generation")) return ParseScope();
  if (tokens_.IsName("break")) return ParseLoopControl(true);
  if (tokens_.IsName("continue")) return ParseLoopControl(false);
  if (!tokens_.Is(TokenKind::kName)) return tokens_.Wrong("the name of a statement is missing");
  return tokens_.Wrong("statement '{}' is not supported", tokens_.current().text);
}

Result<Statement::Node> StatementParser::ParseIf() {
  IfStatement statement;
  expressions_.EnterBranch();
  do {
    tokens_.Take();
    TRY(ExpressionPtr test, Noted(expressions_.ParseTuple(false)));
    TRY(Block body, ParseBody({"elif", "else", "endif"}));
    statement.branches.emplace_back(std::move(test), std::move(body));
  } while (tokens_.IsName("elif"));
  if (tokens_.Take().text == "else") {
    TRY(statement.otherwise, ParseBodyAndEnd("endif"));
  }
  expressions_.LeaveBranch();
  return statement;
}

Result<Statement::Node> StatementParser::ParseFor() {
  tokens_.Take();
  ForStatement statement;
  TRY(statement.target, expressions_.ParseTarget(false));
  if (Names(statement.target, tokens_.names().Intern("loop"))) {
    return tokens_.Wrong("'loop' cannot be the target of a loop");
  }
  if (!tokens_.SkipName("in")) return tokens_.Wrong("'in' is missing");
  TRY(statement.items, Noted(expressions_.ParseTuple(false)));
  if (tokens_.SkipName("if")) {
    TRY(statement.test, Noted(expressions_.Parse()));
    statement.test_target = statement.target;
  }
  if (tokens_.IsName("recursive")) return tokens_.Wrong("'recursive' is not supported");
  const bool outer_loop = std::exchange(context_.in_loop, true);
  TRY(statement.body, ParseBody({"else", "endfor"}));
  context_.in_loop = outer_loop;
  if (tokens_.Take().text == "else") {
    TRY(statement.otherwise, ParseBodyAndEnd("endfor"));
  }
  return statement;
}

Result<Statement::Node> StatementParser::ParseSet() {
  tokens_.Take();
  TRY(Target target, expressions_.ParseTarget(true));
  if (tokens_.SkipOperator("=")) {
    TRY(ExpressionPtr value, Noted(expressions_.ParseTuple(true)));
    return SetStatement{std::move(target), std::move(value)};
  }
  SetBlockStatement statement{.target = std::move(target)};
  TRY(statement.filter, Noted(expressions_.ParseFilters(nullptr)));
  TRY(statement.body, ParseBodyAndEnd("endset"));
  return statement;
}

Result<Statement::Node> StatementParser::ParseWith() {
  tokens_.Take();
  WithStatement statement;
  while (!tokens_.Is(TokenKind::kStatementEnd)) {
    if (!statement.values.empty()) TRY_VOID(tokens_.ExpectOperator(","));
    TRY(Target target, expressions_.ParseTarget(false));
    TRY_VOID(tokens_.ExpectOperator("="));
    TRY(ExpressionPtr value, Noted(expressions_.Parse()));
    statement.values.emplace_back(std::move(target), std::move(value));
  }
  TRY(statement.body, ParseBodyAndEnd("endwith"));
  return statement;
}

Result<Statement::Node> StatementParser::ParseFilterBlock() {
  tokens_.Take();
  FilterBlockStatement statement;
  TRY(statement.filter, Noted(expressions_.ParseFilterChain()));
  TRY(statement.body, ParseBodyAndEnd("endfilter"));
  return statement;
}

Result<Statement::Node> StatementParser::ParseScope() {
  tokens_.Take();
  // jinja2 makes a function of it, which no break can leave.
  const bool outer_loop = std::exchange(context_.in_loop, false);
  ScopeStatement statement;
  TRY(statement.body, ParseBodyAndEnd("endgeneration"));
  context_.in_loop = outer_loop;
  return statement;
}

Result<Statement::Node> StatementParser::ParseMacro() {
  tokens_.Take();
  auto function = std::make_unique<Function>();
  TRY(function->name, tokens_.ExpectName());
  const NameId name = tokens_.names().Intern(function->name);
  TRY_VOID(tokens_.ExpectOperator("("));
  TRY_VOID(ParseParameters(*function));
  TRY_VOID(ParseFunctionBody(*function, "endmacro"));
  return MacroStatement{name, {}, std::move(function)};
}

Result<Statement::Node> StatementParser::ParseCallBlock() {
  tokens_.Take();
  CallBlockStatement statement{.call = nullptr, .caller = std::make_unique<Function>()};
  statement.caller->name = "caller";
  if (tokens_.SkipOperator("(")) TRY_VOID(ParseParameters(*statement.caller));
  TRY(statement.call, Noted(expressions_.Parse()));
  if (!std::holds_alternative<Call>(statement.call->node))
    return tokens_.Wrong("a call is missing");
  TRY_VOID(ParseFunctionBody(*statement.caller, "endcall"));
  return statement;
}

// Behind the opening parenthesis.
Result<> StatementParser::ParseParameters(Function& function) {
  while (!tokens_.IsOperator(")")) {
    TRY(std::string text, tokens_.ExpectName());
    const auto same = [&](const Function::Parameter& other) { return other.text == text; };
    if (std::ranges::any_of(function.parameters, same)) {
      return tokens_.Wrong("a repeated parameter");
    }
    Function::Parameter parameter{.name = tokens_.names().Intern(text), .text = std::move(text)};
    if (tokens_.SkipOperator("=")) {
      TRY(parameter.fallback, Noted(expressions_.Parse()));
    } else if (!function.parameters.empty() && function.parameters.back().fallback != nullptr) {
      return tokens_.Wrong("a parameter without a default after one with a default");
    }
    function.parameters.push_back(std::move(parameter));
    if (!tokens_.SkipOperator(",")) break;
  }
  return tokens_.ExpectOperator(")");
}

Result<> StatementParser::ParseFunctionBody(Function& function, std::string_view end) {
  const Context outer =
      std::exchange(context_, Context{.depth = context_.depth, .height = 0, .in_loop = false});
  TRY(function.body, ParseBodyAndEnd(end));
  for (const Function::Parameter& parameter : function.parameters) {
    context_.height = std::max(context_.height, HeightOf(parameter.fallback));
  }
  function.height = context_.height;
  context_ = outer;
  return {};
}

Result<Statement::Node> StatementParser::ParseLoopControl(bool breaks) {
  const std::string name = tokens_.Take().text;
  if (!context_.in_loop) return tokens_.Wrong("'{}' outside of a loop", name);
  if (breaks) return BreakStatement{};
  return ContinueStatement{};
}

}  // namespace fathom
