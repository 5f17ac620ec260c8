// Which worker can be asked for tokens now?
//
// The least loaded of some ready workers of the model: busy engines answer late. Skipped are
// workers without such an endpoint (for a minute, then they are asked again), workers that failed a
// moment ago, and workers whose circuit breaker is open. A worker that has open questions and has
// answered none of them for longer than a request waits is asked only if there is no other, and not
// at all after kSilence. None of this affects the routing of requests.
//
// Threads  Any. One mutex, taken twice per question; that is cheap compared to the question itself.
// Memory   A few machine words per worker.
#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>

#include "router/fleet/fleet.h"
#include "router/gateway/token_complaints.h"
#include "router/gateway/token_source.h"
#include "router/gateway/tokenizer_builds.h"

namespace fathom {

class TokenizeRoster {
 public:
  static constexpr Duration kUnsupportedFor = std::chrono::seconds(60);
  static constexpr Duration kRest = std::chrono::seconds(2);
  static constexpr Duration kSilence = std::chrono::seconds(2);
  // The load of so many is compared, however many there are; by turn.
  static constexpr size_t kCompared = 8;

  // `patience` is how long a request waits for its tokens.
  TokenizeRoster(Log& log, Duration patience)
      : patience_(patience), complaints_(log), builds_(log) {}

  // The worker to ask, except those that were `tried`; Report() must follow. kUnsupported if no
  // worker of the model can tokenize.
  std::expected<std::shared_ptr<Worker>, TokenFailure> Select(const FleetSnapshot& fleet,
                                                              std::string_view model,
                                                              std::span<const WorkerId> tried,
                                                              TimePoint now);

  enum class Outcome : uint8_t { kAnswered, kFailed, kUnsupported };
  void Report(WorkerId id, Outcome outcome, TimePoint now);

  // How long a request waits at least.
  Duration patience() const { return patience_; }
  TokenComplaints& complaints() { return complaints_; }
  // Questions that no Report() has followed yet.
  size_t open();
  TokenizerBuilds& builds() { return builds_; }

 private:
  struct Standing {
    TimePoint unsupported_until{};
    TimePoint rests_until{};
    uint32_t open = 0;        // questions
    TimePoint quiet_since{};  // since the last answer, while questions are open
  };

  // What speaks against asking a worker.
  struct Burden {
    bool silent = false;
    uint64_t load = 0;
    auto operator<=>(const Burden&) const = default;
  };

  bool Available(const Member& member, TimePoint now) const;
  Burden BurdenOf(const Worker& worker, TimePoint now) const;
  bool Unsupported(WorkerId id, TimePoint now) const;

  const Duration patience_;
  TokenComplaints complaints_;
  TokenizerBuilds builds_;
  std::mutex mutex_;  // guards the rest
  std::unordered_map<WorkerId, Standing> standings_;
  size_t turn_ = 0;
};

}  // namespace fathom
