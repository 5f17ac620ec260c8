// Which prefix do two prompts share, if no tokens are known? That of their texts.
//
// The texts of a request are put in the order in which engines render them, and every four bytes
// become one value: about a token of most languages, so that depths are roughly in tokens. Equal
// beginnings of conversations give equal values; what no engine renders (ids, marks of caches,
// signatures) is left out, and so is Claude Code's billing header, which differs in each request.
//
//   chats          template arguments, tools, documents, then role, text and calls of each message
//   /v1/messages   the same, with `system` before the messages
//   /v1/responses  the same, with `instructions` before the items of `input`
//   completions    the text
//
// Media have tokens that no text shows: the text ends before the first of them.
//
// Cost    One pass, of at most kMostRead bytes.
// Errors  None: of an invalid value some text is read, or none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/engine_kind.h"
#include "router/gateway/request_fields.h"
#include "text/tokens/token.h"

namespace fathom {

class PromptTextReader {
 public:
  static constexpr size_t kMostText = size_t{1} << 19;  // bytes; prompts may be longer
  static constexpr size_t kMostRead = 4 * kMostText;    // bytes of JSON

  // Replaces what is in `values`. `parts` are the members that determine the prompt. Returns
  // whether they stand for all of it.
  bool Read(const PromptFields& parts, EngineKind engine, std::vector<TokenId>& values);

 private:
  std::string text_;  // kept, because it has grown
};

}  // namespace fathom
