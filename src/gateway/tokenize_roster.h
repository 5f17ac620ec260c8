// Which worker can be asked for tokens now?
//
// By turn, among the ready workers of the model. Passed over are those that have no such endpoint
// (for a minute, then they are asked again), those that failed a moment ago, those that have
// questions open and have answered none of them for longer than a request waits, and those whose
// circuit breaker is open. None of this is held against them when requests are routed.
//
// Threads  Any. One mutex, taken twice per question, which is nothing beside the question itself.
// Memory   A few words per worker.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>

#include "fleet/fleet.h"
#include "gateway/token_complaints.h"
#include "gateway/token_source.h"

namespace fathom {

class TokenizeRoster {
 public:
  static constexpr Duration kUnsupportedFor = std::chrono::seconds(60);
  static constexpr Duration kRest = std::chrono::seconds(2);

  // `patience` is how long a request waits for its tokens.
  TokenizeRoster(Log& log, Duration patience) : patience_(patience), complaints_(log) {}

  // Whom to ask, but for those who were `tried`; Report() must follow. kUnsupported where nobody
  // who serves the model can tokenize.
  std::expected<std::shared_ptr<Worker>, TokenFailure> Pick(const FleetSnapshot& fleet,
                                                            std::string_view model,
                                                            std::span<const WorkerId> tried,
                                                            TimePoint now);

  enum class Outcome : uint8_t { kAnswered, kFailed, kUnsupported };
  void Report(WorkerId id, Outcome outcome, TimePoint now);

  TokenComplaints& complaints() { return complaints_; }

 private:
  struct Standing {
    TimePoint unsupported_until{};
    TimePoint rests_until{};
    uint32_t open = 0;        // questions
    TimePoint quiet_since{};  // while some are open
  };

  bool Available(const Member& member, TimePoint now) const;
  bool Unsupported(WorkerId id, TimePoint now) const;

  const Duration patience_;
  TokenComplaints complaints_;
  std::mutex mutex_;  // guards the rest
  std::unordered_map<WorkerId, Standing> standings_;
  size_t turn_ = 0;
};

}  // namespace fathom
