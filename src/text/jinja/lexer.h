// A template's source as tokens.
//
// Whitespace control is done here, as jinja2 does it with trim_blocks and lstrip_blocks: the
// newline after a statement is dropped, and the blanks before it when nothing else is on its line;
// minus and plus signs say otherwise.
//
// Errors  kCaller, with the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fathom {

enum class TokenKind : uint8_t {
  kText,  // between the tags
  kStatementBegin,
  kStatementEnd,
  kPrintBegin,
  kPrintEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  std::string text;  // of a string without its quotes and escapes
  uint32_t line;
};

// The last one is kEnd.
Result<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace fathom
