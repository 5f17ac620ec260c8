// What a Split or a Replace looks for: a text, an expression, or characters of some kind.
//
// Errors   Parse() and FindAll(): kCaller.
// Threads  Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "text/tokenizer/regular_expression.h"
#include "text/unicode/code_point_class.h"

namespace fathom {

// Each character that has one of the properties is a match by itself.
struct CharacterSet {
  CodePointClass any = 0;
  bool ascii_signs = false;           // $+<=>^`|~ are punctuation too
  uint32_t character = kNotUtf8 - 1;  // and this one
};

// Runs of \w and runs of [^\w\s].
struct WordRuns {};

class TextPattern {
 public:
  // {"String": " "} or {"Regex": "\\s+"}
  static Result<TextPattern> Parse(const Json& json);
  explicit TextPattern(CharacterSet set) : what_(set) {}
  explicit TextPattern(WordRuns runs) : what_(runs) {}

  // Appends the matches, from left to right.
  Result<void> FindAll(std::string_view text, std::vector<TextSpan>& out) const;

  // Of an expression; empty for anything else.
  std::string_view source() const { return source_; }
  // The text to be found; nullptr for anything else.
  const std::string* text() const { return std::get_if<std::string>(&what_); }

 private:
  explicit TextPattern(std::string text) : what_(std::move(text)) {}
  TextPattern(RegularExpression expression, std::string source)
      : what_(std::move(expression)), source_(std::move(source)) {}

  std::variant<std::string, RegularExpression, CharacterSet, WordRuns> what_;
  std::string source_;
};

}  // namespace fathom
