// Tokens one after the other, for the parsers, and what they all need: names, depth, complaints.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/lexer.h"
#include "text/jinja/name_table.h"
#include "text/jinja/syntax.h"

namespace fathom {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, NameTable& names)
      : tokens_(std::move(tokens)), names_(names) {}

  const Token& current() const { return tokens_[at_]; }
  // The one after it.
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  uint32_t line() const { return current().line; }

  Token Take() {
    Token token = current();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }

  bool Is(TokenKind kind) const { return current().kind == kind; }
  bool IsOperator(std::string_view text) const {
    return Is(TokenKind::kOperator) && current().text == text;
  }
  bool IsName(std::string_view text) const {
    return Is(TokenKind::kName) && current().text == text;
  }

  bool SkipOperator(std::string_view text) {
    const bool found = IsOperator(text);
    if (found) Take();
    return found;
  }
  bool SkipName(std::string_view text) {
    const bool found = IsName(text);
    if (found) Take();
    return found;
  }

  Result<> ExpectOperator(std::string_view text) {
    if (SkipOperator(text)) return {};
    return Wrong("'{}' is missing", text);
  }
  Result<> Expect(TokenKind kind, std::string_view what) {
    if (!Is(kind)) return Wrong("{} is missing", what);
    Take();
    return {};
  }
  Result<std::string> ExpectName() {
    if (!Is(TokenKind::kName)) return Wrong("a name is missing");
    return Take().text;
  }

  NameTable& names() { return names_; }

  template <class... Args>
  std::unexpected<Error> Wrong(fmt::format_string<Args...> text, Args&&... args) const {
    return Fail(Blame::kCaller, "line {}: {}", line(),
                fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  NameTable& names_;
};

}  // namespace fathom
