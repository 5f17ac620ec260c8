// Which key identifies this prompt, and which the conversation before its last messages?
//
// A chat's key is a chain over its messages: computing it passes through the keys of earlier turns
// of the same conversation.
//
// The key includes the model and every member that decides over the answer of the engine's
// /tokenize (kPromptFields). Whitespace between messages is not included.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "router/gateway/request_fields.h"
#include "text/tokens/text_key.h"

namespace fathom {

class PromptKeys {
 public:
  // How many messages back an earlier turn is searched.
  static constexpr size_t kReach = 32;

  PromptKeys(std::string_view model, EngineKind engine, const PromptFields& parts, uint64_t secret);

  const TextKey& whole() const { return whole_; }
  // Of a chat: the key of all messages but the last, but the last two, and so on. At least one
  // message is left, and fewer than kReach are removed.
  size_t earlier() const { return earlier_; }
  const TextKey& Earlier(size_t i) const;

  // Of a chat.
  size_t messages() const { return messages_; }
  // The key of the first message, if others follow; null also if these are kReach or more.
  const TextKey* first_message() const {
    return messages_ >= 2 && messages_ <= kReach ? &ring_[0] : nullptr;
  }

 private:
  void ChainMessages(std::string_view messages, uint64_t secret);

  TextKey whole_;
  std::array<TextKey, kReach> ring_;  // the key after message i is at i % kReach
  size_t messages_ = 0;
  size_t earlier_ = 0;
};

}  // namespace fathom
