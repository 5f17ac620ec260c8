// Text of users that shall stay text: what looks like a special token in it is marked, so that
// none is found there once the chat is rendered (model/prompt_parts.h takes the marks out again).
// Marks that texts bring themselves are doubled, whoever wrote them.
//
// Only of use where the engine gets token ids: of a text it would make special tokens all the same.
#pragma once

#include <string>

#include "text/chat/chat_request.h"
#include "text/tokenizer/tokenizer.h"

namespace fathom {

class LiteralText final : public TextFilter {
 public:
  explicit LiteralText(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  std::string Apply(std::string text, bool from_outside) const override;

 private:
  void BreakHidden(std::string& text) const;

  const Tokenizer& tokenizer_;
};

}  // namespace fathom
