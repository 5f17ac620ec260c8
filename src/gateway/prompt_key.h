// What is the name of this prompt, and of the conversation before its last messages?
//
// A key is a 128-bit hash, XXH3 with a secret seed, so that nobody can make two prompts that share
// one. A chat's key is a chain over its messages: the keys of earlier turns of the same
// conversation are met on the way to it.
//
// In the key is the model and all that an engine's /tokenize takes (kPromptFields); space between
// messages is not. What only the chat itself takes (reasoning_effort, documents, tool_choice) is in
// neither: such a prompt has the tokens of the same chat without it, which are right up to where
// the template first puts it to use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "gateway/request_fields.h"

namespace fathom {

struct PromptKey {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const PromptKey&, const PromptKey&) = default;
};

class PromptKeys {
 public:
  // How many messages back an earlier turn is looked for.
  static constexpr size_t kReach = 32;

  PromptKeys(std::string_view model, const PromptFields& parts, uint64_t secret);

  const PromptKey& whole() const { return whole_; }
  // Of a chat: the key of all messages but the last, but the last two, and so on. At least one
  // message is left, and fewer than kReach are gone.
  size_t earlier() const { return earlier_; }
  const PromptKey& Earlier(size_t i) const;

 private:
  void ChainMessages(std::string_view messages, uint64_t secret);

  PromptKey whole_;
  std::array<PromptKey, kReach> ring_;  // the key after message i is at i % kReach
  size_t messages_ = 0;
  size_t earlier_ = 0;
};

}  // namespace fathom

template <>
struct std::hash<fathom::PromptKey> {
  size_t operator()(const fathom::PromptKey& key) const { return key.low; }
};
