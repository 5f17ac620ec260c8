#include "gateway/prompt_key.h"

#include <xxhash.h>

#include <algorithm>

#include "base/check.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

PromptKey HashOf(const void* data, size_t size, uint64_t secret) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(data, size, secret);
  return {hash.low64, hash.high64};
}

// The key of what `before` names, with `text` after it. Texts are hashed first, so that it makes a
// difference where one ends and the next begins.
PromptKey Chain(const PromptKey& before, std::string_view text, uint64_t secret) {
  const PromptKey last = HashOf(text.data(), text.size(), secret);
  const std::array<uint64_t, 4> both = {before.low, before.high, last.low, last.high};
  return HashOf(both.data(), sizeof(both), secret);
}

}  // namespace

PromptKeys::PromptKeys(std::string_view model, const PromptFields& parts, uint64_t secret)
    : whole_(HashOf(model.data(), model.size(), secret)) {
  for (const PromptField& field : kPromptFields) {
    if (field.value == &PromptFields::messages) continue;
    whole_ = Chain(whole_, parts.*field.value, secret);
  }
  if (parts.messages.starts_with('[')) {
    ChainMessages(parts.messages, secret);
  } else {
    whole_ = Chain(whole_, parts.messages, secret);
  }
}

void PromptKeys::ChainMessages(std::string_view messages, uint64_t secret) {
  JsonElements elements(messages);
  while (const auto message = elements.Next()) {
    whole_ = Chain(whole_, *message, secret);
    ring_[messages_++ % kReach] = whole_;
  }
  earlier_ = messages_ == 0 ? 0 : std::min(messages_ - 1, kReach - 1);
}

const PromptKey& PromptKeys::Earlier(size_t i) const {
  CHECK(i < earlier_);
  return ring_[(messages_ - 2 - i) % kReach];
}

}  // namespace fathom
