// Asks for the tokens of prompts, each prompt once even if many requests have it at the same time,
// and keeps the answers.
//
// Lateness  A request waits until its own deadline. The question continues for up to kLongest, so
//           that the next turn of the conversation finds the answer in the cache.
// Memory    Open questions hold copies of their texts: at most kMaxOpen of them, and kMaxBytes.
// Threads   One loop. Open questions keep the desk alive after its owner has released it.
#pragma once

#include <expected>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "io/net/wakeable_wait.h"
#include "metrics/histogram.h"
#include "router/gateway/prompt_key.h"
#include "router/gateway/token_source.h"
#include "text/model/token_cache.h"

namespace fathom {

class TokenDesk : public std::enable_shared_from_this<TokenDesk> {
 public:
  static constexpr size_t kMaxOpen = 1024;
  static constexpr size_t kMaxBytes = size_t{64} << 20;
  static constexpr Duration kLongest = std::chrono::seconds(10);

  using Outcome = std::expected<SharedTokens, TokenFailure>;

  TokenDesk(Loop& loop, std::shared_ptr<TokenSource> source, TokenCache& cache, Histogram& duration)
      : loop_(loop), source_(std::move(source)), cache_(cache), duration_(duration) {}

  // The question is copied before the task waits.
  Task<Outcome> Ask(TextKey key, const TokenQuestion& question, TimePoint deadline);

  size_t open() const { return calls_.size(); }

 private:
  struct Call {
    TextKey key;
    std::string text;  // the text that `question` points to
    TokenQuestion question;
    std::optional<Outcome> outcome;
    std::list<WakeableWait*> waiting;
  };

  std::shared_ptr<Call> Open(const TextKey& key, const TokenQuestion& question);
  static Task<void> Run(std::shared_ptr<TokenDesk> desk, std::shared_ptr<Call> call);
  void Close(Call& call, TokenAnswer answer);

  Loop& loop_;
  const std::shared_ptr<TokenSource> source_;
  TokenCache& cache_;
  Histogram& duration_;
  std::unordered_map<TextKey, std::shared_ptr<Call>> calls_;
  size_t bytes_ = 0;  // of their texts
};

}  // namespace fathom
