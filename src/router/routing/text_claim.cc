#include "router/routing/text_claim.h"

namespace fathom {

TextClaim::TextClaim(ApproximateIndex& memory, const Steering::Choice& choice, size_t length,
                     bool whole)
    : memory_(memory),
      rank_(*choice.place.rank),
      label_(choice.place.label()),
      assumed_(choice.decision->rank().text),
      length_(length),
      whole_(whole) {}

void TextClaim::FirstByte(std::span<const TokenId> values, uint64_t seed, TimePoint now) {
  served_ = true;
  number_ = memory_.Send(label_, values, seed, now);
}

std::optional<TextClaim::Outcome> TextClaim::End(uint64_t prompt_tokens,
                                                 std::optional<uint64_t> cached) {
  if (!served_ || assumed_ == 0 || !whole_ || !cached || prompt_tokens == 0) return std::nullopt;
  // The same prompt shows how many tokens a value is, in this language and with this tokenizer.
  const double scale = static_cast<double>(prompt_tokens) / static_cast<double>(length_);
  const Outcome outcome{.assumed = static_cast<uint64_t>(assumed_ * scale), .found = *cached};
  if (outcome.assumed == 0) return std::nullopt;
  const bool counts = rank_.text.Served(outcome.assumed, outcome.found);
  const bool evicted = counts && outcome.found < outcome.assumed / 2;
  if (evicted && number_ != 0) {
    memory_.Evicted(number_, static_cast<size_t>(static_cast<double>(outcome.found) / scale));
  }
  return outcome;
}

}  // namespace fathom
