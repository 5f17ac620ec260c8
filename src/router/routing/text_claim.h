// What was assumed of the rank that serves a prompt by its text, and did it come true?
//
// For prompts without known tokens (router/gateway/prompt_text.h). The values of their texts are
// kept like the tokens for engines without KV events, in an index of their own, so that neither is
// ever taken for the other. They influence the choice, and are never reported as cached.
//
//   created    when the request is dispatched: what is assumed of the chosen rank
//   FirstByte  the engine has computed the prompt: its text is noted
//   End        the engine's report corrects the assumption: a rank that does not have the prefix
//   any
//              more has evicted it, and with it everything older; and its credit falls
//              (router/fleet/text_record.h)
//
// Threads  One.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "router/routing/approximate_index.h"
#include "router/routing/steering.h"

namespace fathom {

class TextClaim {
 public:
  // For the decision that was just made. `length` is that of the prompt's values; `whole`: they
  // stand for all of it, and the engine counts its cached tokens for this prompt alone. The place's
  // worker and the memory must outlive the claim.
  TextClaim(ApproximateIndex& memory, const Steering::Choice& choice, size_t length, bool whole);

  // Once, with the values of the prompt and the seed of their namespace.
  void FirstByte(std::span<const TokenId> values, uint64_t seed, TimePoint now);

  bool served() const { return served_; }

  struct Outcome {
    uint64_t assumed = 0;  // tokens, as the engine counts them
    uint64_t found = 0;
  };
  // The engine's report about the prompt. Nothing: nothing was assumed, or it cannot be compared.
  std::optional<Outcome> End(uint64_t prompt_tokens, std::optional<uint64_t> cached);

 private:
  ApproximateIndex& memory_;
  Rank& rank_;
  const RankLabel label_;
  const uint32_t assumed_;  // values
  const size_t length_;
  const bool whole_;
  bool served_ = false;
  uint64_t number_ = 0;  // in the index
};

}  // namespace fathom
