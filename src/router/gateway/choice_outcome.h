// What came of a choice: did the worker have what was assumed, and what was prefilled in vain?
//
// One of three accounts, by what is known of the prompt:
//   tokens   the prediction from KV events is compared with the engine's report (Testimony)
//   text     the same of what its text let expect (TextClaim)
//   nothing  the text is noted, to estimate what was wasted (BlindPrompt)
//
// Threads  The request's loop.
#pragma once

#include <optional>

#include "router/gateway/blind_prompts.h"
#include "router/gateway/loop_router.h"
#include "router/gateway/prompt_tokens.h"
#include "router/gateway/request_fields.h"
#include "router/gateway/usage_report.h"
#include "router/routing/testimony.h"
#include "router/routing/text_claim.h"

namespace fathom {

class ChoiceOutcome {
 public:
  // The router and the fields must outlive it.
  ChoiceOutcome(LoopRouter& router, Route route, const RequestFields& fields)
      : router_(router), context_(router.context), route_(route), fields_(fields) {}

  // The choice was just made and kept. The fleet must outlive the account.
  void Begin(const Steering::Choice& choice, const RouteQuestion& question,
             const PromptTokens& prompt, const FleetSnapshot& fleet, TimePoint now);
  // The engine has computed the prompt.
  void FirstByte(const PromptTokens& prompt, const FleetSnapshot& fleet, TimePoint now);
  void SetUsage(const EngineUsage& usage) { usage_ = usage; }
  // The worker no longer works on the request.
  void End(TimePoint now);

 private:
  void BeginTestimony(const Steering::Choice& choice, const RouteQuestion& question,
                      const PromptTokens& prompt, const FleetSnapshot& fleet, TimePoint now);
  void BeginBlind(const Steering::Choice& choice, const PromptTokens& prompt, TimePoint now);
  void BeginClaim(const Steering::Choice& choice, const PromptTokens& prompt);
  void EndTestimony(std::optional<uint32_t> cached, TimePoint now);
  void EndBlind(std::optional<uint32_t> cached);
  void EndClaim(std::optional<uint32_t> cached);

  LoopRouter& router_;
  GatewayContext& context_;
  const Route route_;
  const RequestFields& fields_;

  std::optional<Testimony> testimony_;  // if KV events are followed
  std::optional<BlindPrompt> blind_;    // if nothing of the prompt is known
  std::optional<TextClaim> claim_;      // if texts are remembered
  // Of the last choice.
  bool by_text_ = false;
  uint64_t decision_ = 0;        // its number
  uint64_t guessed_tokens_ = 0;  // of the prompt
  EngineKind engine_ = EngineKind::kUnknown;
  std::optional<EngineUsage> usage_;
};

}  // namespace fathom
