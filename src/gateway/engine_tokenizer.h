// The tokens of a text or a chat, from the tokenizers of the engines: POST /tokenize, which vLLM
// and SGLang have. What the client wrote goes there byte for byte, so that both read the same.
//
// Errors  A worker that fails is not blamed for it; another one is asked, up to kAttempts in all. A
//         worker that refuses the question itself (4xx) ends it: others would do the same.
// Memory  An answer of more than kMaxAnswer bytes is an error.
#pragma once

#include "gateway/token_source.h"
#include "gateway/tokenize_roster.h"
#include "gateway/worker_call.h"

namespace fathom {

class EngineTokenizer final : public TokenSource {
 public:
  static constexpr size_t kAttempts = 3;
  static constexpr size_t kMaxAnswer = size_t{64} << 20;

  EngineTokenizer(Loop& loop, Resolver& resolver, const Directory& directory,
                  TokenizeRoster& roster)
      : loop_(loop), calls_(loop, resolver, directory), roster_(roster) {}

  Task<TokenAnswer> Tokenize(const TokenQuestion& question, TimePoint deadline) override;
  void Miss(std::string_view model, TokenFailure reason, TimePoint now) override {
    roster_.complaints().Miss(model, reason, now);
  }

 private:
  Task<TokenAnswer> Ask(const Worker& worker, std::string_view body, TimePoint deadline);

  Loop& loop_;
  WorkerCalls calls_;
  TokenizeRoster& roster_;
};

}  // namespace fathom
