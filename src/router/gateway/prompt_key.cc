#include "router/gateway/prompt_key.h"

#include <algorithm>

#include "base/check.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

// The same bytes have other tokens by another API.
std::string_view NameOf(PromptApi api) {
  if (api == PromptApi::kMessages) return "messages";
  return api == PromptApi::kResponses ? "responses" : "";
}

}  // namespace

PromptKeys::PromptKeys(std::string_view model, EngineKind engine, const PromptFields& parts,
                       uint64_t secret)
    : whole_(ChainText(KeyOfText(model, secret), NameOf(parts.api), secret)) {
  const auto turns =
      parts.api == PromptApi::kResponses ? &PromptFields::input : &PromptFields::messages;
  for (const PromptField& field : kPromptFields) {
    const bool counts =
        parts.api != PromptApi::kChat || field.By(engine) != PromptField::Asked::kNot;
    if (field.value == turns || !counts) continue;
    whole_ = ChainText(whole_, parts.*field.value, secret);
  }
  const std::string_view conversation = parts.*turns;
  if (conversation.starts_with('[')) {
    ChainMessages(conversation, secret);
  } else {
    whole_ = ChainText(whole_, conversation, secret);
  }
}

void PromptKeys::ChainMessages(std::string_view messages, uint64_t secret) {
  JsonElements elements(messages);
  while (const auto message = elements.Next()) {
    whole_ = ChainText(whole_, *message, secret);
    ring_[messages_++ % kReach] = whole_;
  }
  earlier_ = messages_ == 0 ? 0 : std::min(messages_ - 1, kReach - 1);
}

const TextKey& PromptKeys::Earlier(size_t i) const {
  CHECK(i < earlier_);
  return ring_[(messages_ - 2 - i) % kReach];
}

}  // namespace fathom
