#include "text/tokenizer/text_pattern.h"

#include <utility>

#include "text/unicode/utf8.h"

namespace fathom {
namespace {

bool IsAsciiSign(uint32_t value) {
  return value < 0x80 &&
         std::string_view("$+<=>^`|~").find(static_cast<char>(value)) != std::string_view::npos;
}

struct Find {
  std::string_view text;
  std::vector<TextSpan>& out;

  Result<void> operator()(const std::string& what) const {
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) {
      out.push_back({at, at + what.size()});
    }
    return {};
  }

  Result<void> operator()(const RegularExpression& expression) const {
    return expression.FindAll(text, out);
  }

  Result<void> operator()(const CharacterSet& set) const {
    const CodePointClasses& classes = CodePointClasses::Table();
    for (size_t at = 0; at < text.size();) {
      const CodePoint next = FirstCodePoint(text.substr(at));
      const bool matches = (classes[next.value] & set.any) != 0 || next.value == set.character ||
                           (set.ascii_signs && IsAsciiSign(next.value));
      if (matches) out.push_back({at, at + next.length});
      at += next.length;
    }
    return {};
  }

  Result<void> operator()(WordRuns) const {
    const CodePointClasses& classes = CodePointClasses::Table();
    CodePointClass last = kSpace;
    for (size_t at = 0; at < text.size();) {
      const CodePoint next = FirstCodePoint(text.substr(at));
      const CodePointClass kind = classes[next.value] & (kWordPart | kSpace);
      if (kind != kSpace && kind == last) {
        out.back().end += next.length;
      } else if (kind != kSpace) {
        out.push_back({at, at + next.length});
      }
      last = kind;
      at += next.length;
    }
    return {};
  }
};

}  // namespace

Result<TextPattern> TextPattern::Parse(const Json& json) {
  if (const Json* text = json.Find("String"); text != nullptr && text->string() != nullptr) {
    if (text->string()->empty()) return Fail(Blame::kCaller, "not supported: an empty pattern");
    return TextPattern(*text->string());
  }
  const Json* source = json.Find("Regex");
  if (source == nullptr || source->string() == nullptr) {
    return Fail(Blame::kCaller, "a pattern is neither String nor Regex");
  }
  TRY(RegularExpression expression, RegularExpression::Compile(*source->string()));
  return TextPattern(std::move(expression), *source->string());
}

Result<void> TextPattern::FindAll(std::string_view text, std::vector<TextSpan>& out) const {
  return std::visit(Find{text, out}, what_);
}

}  // namespace fathom
