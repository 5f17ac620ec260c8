// Gets the tokens of a text or a chat from the engines: POST /tokenize, which vLLM and SGLang have.
// The client's text is sent byte for byte, so that engine and router see the same.
//
// Errors  A failure here does not affect a worker's routing; another worker is asked, up to
//         kAttempts in all. If a worker refuses the question itself (4xx), no other is asked: they
//         would refuse it too.
// Memory  An answer of more than kMaxAnswer bytes is an error.
#pragma once

#include "router/gateway/token_source.h"
#include "router/gateway/tokenize_roster.h"
#include "router/gateway/worker_call.h"

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
