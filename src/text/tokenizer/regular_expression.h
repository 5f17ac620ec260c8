// Where does a regular expression match? PCRE2 with its compiler, reading what is written for
// Oniguruma.
//
// Errors   Compile(): kCaller. FindAll(): kCaller, when the engine gives up: it is given so much
//          work, memory and depth, and no more.
// Memory   A few KiB of code per expression.
// Threads  Immutable.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fathom {

struct TextSpan {
  size_t begin;
  size_t end;
};

class RegularExpression {
 public:
  static constexpr size_t kMaxPattern = size_t{64} << 10;

  static Result<RegularExpression> Compile(std::string_view onig_pattern);
  ~RegularExpression();
  RegularExpression(RegularExpression&&) noexcept;
  RegularExpression& operator=(RegularExpression&&) noexcept;

  // Appends the matches, from left to right. Bytes that are not UTF-8 match nothing. An empty match
  // is never right behind another one.
  Result<void> FindAll(std::string_view text, std::vector<TextSpan>& out) const;

 private:
  struct Code;
  explicit RegularExpression(std::unique_ptr<const Code> code);

  std::unique_ptr<const Code> code_;
};

}  // namespace fathom
