// Tokens to statements.
//
// Errors  kCaller, with the line; also for statements that are not supported (include, extends...).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "text/jinja/expression_parser.h"
#include "text/jinja/syntax.h"
#include "text/jinja/token_stream.h"

namespace fathom {

class StatementParser {
 public:
  explicit StatementParser(TokenStream& tokens) : tokens_(tokens), expressions_(tokens) {}

  // The whole template.
  Result<std::unique_ptr<Function>> Parse();

 private:
  // How tall what is parsed is, and whether a break would leave a loop.
  struct Context {
    uint32_t depth = 0;
    uint32_t height = 0;
    bool in_loop = false;
  };

  using Ends = std::initializer_list<std::string_view>;

  // Up to one of `ends`, which is left to the caller; none: up to the end of the template.
  Result<Block> ParseBlock(Ends ends);
  // The same behind a tag that is still open.
  Result<Block> ParseBody(Ends ends);
  // The same for one end, which is taken.
  Result<Block> ParseBodyAndEnd(std::string_view end);
  Result<Statement::Node> ParseStatement();
  Result<Statement::Node> ParsePrint();
  Result<Statement::Node> ParseIf();
  Result<Statement::Node> ParseFor();
  Result<Statement::Node> ParseSet();
  Result<Statement::Node> ParseWith();
  Result<Statement::Node> ParseFilterBlock();
  Result<Statement::Node> ParseScope();
  Result<Statement::Node> ParseMacro();
  Result<Statement::Node> ParseCallBlock();
  Result<Statement::Node> ParseLoopControl(bool breaks);
  Result<> ParseParameters(Function& function);
  Result<> ParseFunctionBody(Function& function, std::string_view end);
  // Notes how tall the expression is.
  Result<ExpressionPtr> Noted(Result<ExpressionPtr> expression);

  TokenStream& tokens_;
  ExpressionParser expressions_;
  Context context_;
};

}  // namespace fathom
