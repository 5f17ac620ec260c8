#include "text/model/literal_text.h"

#include <vector>

#include "text/model/prompt_parts.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// A mark after each character: whatever token was there, it is in pieces.
void AppendBroken(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const uint32_t length = FirstCodePoint(text).length;
    out += text.substr(0, length);
    out += kLiteralMark;
    text.remove_prefix(length);
  }
}

// The text's own marks are doubled.
void AppendPlain(std::string& out, std::string_view text) {
  for (size_t mark = text.find(kLiteralMark); mark != std::string_view::npos;
       mark = text.find(kLiteralMark)) {
    const size_t end = mark + kLiteralMark.size();
    out += text.substr(0, end);
    out += kLiteralMark;
    text.remove_prefix(end);
  }
  out += text;
}

}  // namespace

std::string LiteralText::Apply(std::string text, bool from_outside) const {
  std::vector<TextPiece> pieces;
  if (from_outside) {
    tokenizer_.Split(text, pieces);
  } else {
    pieces.push_back({.text = text});
  }
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const TextPiece& piece : pieces) {
    piece.is_token() ? AppendBroken(out, piece.text) : AppendPlain(out, piece.text);
  }
  if (from_outside) BreakHidden(out);
  return out;
}

// Tokens that are looked for behind the normalizer are not found by Split().
void LiteralText::BreakHidden(std::string& text) const {
  for (const AddedToken& token : tokenizer_.added_tokens()) {
    if (!token.normalized || token.content.empty()) continue;
    std::string broken;
    AppendBroken(broken, token.content);
    for (size_t at = text.find(token.content); at != std::string::npos;
         at = text.find(token.content, at + broken.size())) {
      text.replace(at, token.content.size(), broken);
    }
  }
}

}  // namespace fathom
