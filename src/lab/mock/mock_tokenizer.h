// Which tokens does an engine make of texts and chats?
//
// Those of a model, if it has one: a chat is prepared as the imitated engine does it, then the
// model's template and tokenizer say the rest, at once and from the beginning, so that they judge
// whoever takes a shorter way. Parts of a message that are no text stand in it as [type:hash].
// Without a model: toy_template.h and toy_tokenizer.h.
//
// Errors   kCaller, one line for the client.
// Threads  Any.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/mock/mock_options.h"
#include "text/model/language_model.h"

namespace fathom {

class MockTokenizer {
 public:
  // The options' model must outlive it.
  explicit MockTokenizer(const MockOptions& options);

  // A prompt that is a text: JSON, quotes and all.
  Result<std::vector<TokenId>> Text(std::string_view json,
                                    std::string_view add_special_tokens) const;
  Result<std::vector<TokenId>> Chat(const ChatFields& chat) const;
  // What follows a prompt, as an answer does. Given back in the next prompt it has these tokens
  // again, as far as the model's words do not reach across its ends.
  Result<std::vector<TokenId>> Continuation(std::string_view text) const;

  // Whether the model has all of these; without one there is nothing to compare with.
  Result<void> CheckIds(std::span<const TokenId> ids) const;

  // Pieces of one character are no UTF-8 by themselves.
  std::string Piece(TokenId token) const;
  std::string Decode(std::span<const TokenId> tokens) const;

 private:
  Result<std::vector<TokenId>> ToyChat(const ChatFields& chat) const;
  Result<std::vector<TokenId>> Encode(const RenderedPrompt& rendered) const;

  const LanguageModel* const model_;  // null: the toy
  const ChatDialect dialect_;
  const std::string reasoning_parser_;
};

}  // namespace fathom
