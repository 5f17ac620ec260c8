// What is the name of this prompt, and of the conversation before its last messages?
//
// A chat's key is a chain over its messages: the keys of earlier turns of the same conversation are
// met on the way to it.
//
// In the key is the model and all that an engine's /tokenize takes (kPromptFields); space between
// messages is not. What only the chat itself takes (reasoning_effort, documents, tool_choice) is in
// neither: such a prompt has the tokens of the same chat without it, which are right up to where
// the template first puts it to use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gateway/request_fields.h"
#include "tokens/text_key.h"

namespace fathom {

class PromptKeys {
 public:
  // How many messages back an earlier turn is looked for.
  static constexpr size_t kReach = 32;

  PromptKeys(std::string_view model, const PromptFields& parts, uint64_t secret);

  const TextKey& whole() const { return whole_; }
  // Of a chat: the key of all messages but the last, but the last two, and so on. At least one
  // message is left, and fewer than kReach are gone.
  size_t earlier() const { return earlier_; }
  const TextKey& Earlier(size_t i) const;

 private:
  void ChainMessages(std::string_view messages, uint64_t secret);

  TextKey whole_;
  std::array<TextKey, kReach> ring_;  // the key after message i is at i % kReach
  size_t messages_ = 0;
  size_t earlier_ = 0;
};

}  // namespace fathom
