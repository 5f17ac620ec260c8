// Gets the tokens of a text or a chat from the engines: POST /tokenize, which vLLM and SGLang have.
// The client's text is sent byte for byte, so that engine and router see the same.
//
// Late    If the first worker has not answered within a quarter of what a request waits at least,
//         a second one is asked too, once per question; the first answer counts.
// Errors  A failure here does not affect a worker's routing; another worker is asked, up to
//         kAttempts in all. If a worker refuses the question itself (4xx), no other is asked: they
//         would refuse it too.
// Memory  An answer of more than kMaxAnswer bytes is an error.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/net/wakeable_wait.h"
#include "router/gateway/token_source.h"
#include "router/gateway/tokenize_roster.h"
#include "router/gateway/worker_call.h"

namespace fathom {

// Must be owned by a shared_ptr: a question that was overtaken by another keeps it.
class EngineTokenizer final : public TokenSource,
                              public std::enable_shared_from_this<EngineTokenizer> {
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
  // A question, and the workers that were asked.
  struct Race {
    std::string body;
    bool may_have_none = false;  // the text has no tokens
    TimePoint deadline;
    std::vector<WorkerId> tried;
    size_t open = 0;
    std::optional<TokenAnswer> decided;  // tokens, or a refusal of the question itself
    TokenFailure failure = TokenFailure::kError;
    WakeableWait* waiting = nullptr;
  };

  // False: there is no other worker; `why` is then the reason.
  bool AskNext(const TokenQuestion& question, const std::shared_ptr<Race>& race, TokenFailure& why);
  static Task<void> Run(std::shared_ptr<EngineTokenizer> self, std::shared_ptr<Race> race,
                        std::shared_ptr<Worker> worker);
  Task<void> Await(Race& race, TimePoint until);
  Task<TokenAnswer> Ask(const Worker& worker, std::string_view body, TimePoint deadline);

  Loop& loop_;
  WorkerCalls calls_;
  TokenizeRoster& roster_;
};

}  // namespace fathom
