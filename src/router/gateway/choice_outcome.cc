#include "router/gateway/choice_outcome.h"

#include <algorithm>

#include "router/gateway/prompt_kind.h"
#include "text/tokens/text_key.h"

namespace fathom {
namespace {

// A greater number of tokens in an engine's report is invalid.
constexpr uint64_t kMostReported = 1u << 30;

bool IsExact(const PromptTokens& prompt) {
  switch (prompt.from) {
    case TokensFrom::kFilesPart:
    case TokensFrom::kEnginePart:
    case TokensFrom::kText:
    case TokensFrom::kNone:
      return false;
    case TokensFrom::kIds:
    case TokensFrom::kCache:
    case TokensFrom::kFiles:
    case TokensFrom::kEngine:
      break;
  }
  return !prompt.inexact;
}

// The engine counts the cached tokens of several prompts in one request together.
bool HasSeveralPrompts(std::string_view prompt) {
  if (!prompt.starts_with('[')) return false;
  const size_t first = prompt.find_first_not_of(" \t\r\n", 1);
  return first != std::string_view::npos && (prompt[first] == '"' || prompt[first] == '[');
}

// Whether the engine's count of cached tokens is for the chosen rank and for this prompt alone.
bool IsComparable(const Worker& worker, const RequestFields& fields, Route route) {
  const bool certain = CanBeTold(worker) || !worker.ranks.several();
  return certain && !fields.counts_otherwise && !fields.echo &&
         !HasSeveralPrompts(TextOrIds(fields, route));
}

// A count above the prompt's length is invalid.
std::optional<uint32_t> FoundBy(const EngineUsage& usage) {
  const uint64_t most = std::min(usage.prompt_tokens, kMostReported);
  if (!usage.cached_tokens || *usage.cached_tokens > most) return std::nullopt;
  return static_cast<uint32_t>(*usage.cached_tokens);
}

// Whether the engine computes the text of the request, and no more or less than that.
bool IsWholeText(UnreadReason reason) {
  return reason != UnreadReason::kMedia && reason != UnreadReason::kContinued &&
         reason != UnreadReason::kTruncated;
}

}  // namespace

void ChoiceOutcome::Begin(const Steering::Choice& choice, const RouteQuestion& question,
                          const PromptTokens& prompt, const FleetSnapshot& fleet, TimePoint now) {
  decision_ = choice.decision->number;
  by_text_ = choice.decision->by_text;
  guessed_tokens_ = prompt.prompt_tokens;
  engine_ = choice.place.worker->report.engine();
  usage_.reset();
  BeginTestimony(choice, question, prompt, fleet, now);
  BeginBlind(choice, prompt, now);
  BeginClaim(choice, prompt);
}

void ChoiceOutcome::BeginTestimony(const Steering::Choice& choice, const RouteQuestion& question,
                                   const PromptTokens& prompt, const FleetSnapshot& fleet,
                                   TimePoint now) {
  const bool by_text = prompt.from == TokensFrom::kText;
  if (context_.cache_index == nullptr || prompt.tokens.empty() || by_text) return;
  const Testimony::About about{.fleet = fleet,
                               .model = fields_.model,
                               .exact = IsExact(prompt),
                               .comparable = IsComparable(*choice.place.worker, fields_, route_),
                               .narrowed = !choice.decision->narrowed_by.empty()};
  testimony_.emplace(context_.cache_index->lost(), router_.steering, choice, question, about, now);
}

// Without tokens the index cannot tell what other ranks had of the prompt: its text can, roughly.
void ChoiceOutcome::BeginBlind(const Steering::Choice& choice, const PromptTokens& prompt,
                               TimePoint now) {
  blind_.reset();
  if (!prompt.unread || prompt.from == TokensFrom::kText) return;
  const bool comparable =
      IsWholeText(*prompt.unread) && IsComparable(*choice.place.worker, fields_, route_);
  const uint64_t secret = context_.steering.secret;
  const uint64_t space = KeyOfText(fields_.model, secret).low ^ prompt.seed;
  blind_.emplace(context_.blind_prompts,
                 TextPieces(comparable ? fields_.parts : PromptFields(), space, secret),
                 choice.place.label(), now);
}

void ChoiceOutcome::BeginClaim(const Steering::Choice& choice, const PromptTokens& prompt) {
  if (!context_.steering.texts || prompt.text.empty()) return;
  claim_.emplace(*context_.steering.texts, choice, prompt.text.size(),
                 prompt.text_whole && IsComparable(*choice.place.worker, fields_, route_));
}

void ChoiceOutcome::FirstByte(const PromptTokens& prompt, const FleetSnapshot& fleet,
                              TimePoint now) {
  if (testimony_) testimony_->FirstByte(now);
  if (blind_) blind_->FirstByte(now);
  if (claim_) claim_->FirstByte(prompt.text, prompt.text_seed, now);
  context_.prompt_watch.Note({.model = fleet.NameServed(fields_.model),
                              .route = route_,
                              .engine = engine_,
                              .unread = prompt.unread,
                              .by_text = prompt.from == TokensFrom::kText,
                              .tokens = prompt.prompt_tokens},
                             now);
}

void ChoiceOutcome::End(TimePoint now) {
  const std::optional<uint32_t> cached = usage_ ? FoundBy(*usage_) : std::nullopt;
  EndTestimony(cached, now);
  EndBlind(cached);
  EndClaim(cached);
}

void ChoiceOutcome::EndTestimony(std::optional<uint32_t> cached, TimePoint now) {
  if (!testimony_) return;
  if (const auto outcome = testimony_->End(cached, now)) {
    context_.metrics.CountOutcome(outcome->predicted, outcome->found, outcome->waste);
    context_.steering.ring.Complete(decision_, cached, outcome->waste);
  }
  testimony_.reset();
}

void ChoiceOutcome::EndBlind(std::optional<uint32_t> cached) {
  if (!blind_) return;
  const auto outcome = blind_->End(usage_, guessed_tokens_);
  blind_.reset();
  if (!outcome) return;
  Waste waste;
  waste[WasteCause::kUnread] = outcome->wasted;
  context_.metrics.CountBlind(outcome->prompt_tokens, waste);
  context_.steering.ring.Complete(decision_, cached, waste);
}

void ChoiceOutcome::EndClaim(std::optional<uint32_t> cached) {
  if (!claim_) return;
  const bool valid = usage_ && usage_->prompt_tokens <= kMostReported;
  const uint64_t tokens = valid ? usage_->prompt_tokens : 0;
  if (const auto outcome = claim_->End(tokens, cached)) {
    context_.metrics.CountText(outcome->assumed, outcome->found);
  }
  if (by_text_ && claim_->served()) {
    context_.metrics.CountBlind(tokens > 0 ? tokens : guessed_tokens_, {});
    context_.steering.ring.Complete(decision_, cached, {});
  }
  claim_.reset();
}

}  // namespace fathom
