// Do follow-up turns get faster when nothing else presses?
//
// Talks to the model behind a router: small conversations, first one at a time, then two, four ...
// at once. A follow-up turn repeats all that was said before, so a fleet that keeps and finds its
// caches answers it sooner than the first.
//
// Not read-only: engines compute, and their caches hold the probe's filler for a while. It is
// bounded: at each level as many conversations as people, at least kConversations, of kTurns turns;
// a first message of about kOpeningWords words, kReplyWords with each turn, kAnswerTokens of
// answer. Every conversation begins with words of its own, so it shares nothing with real traffic
// or with another probe. A level with a failed turn is the last.
//
// Threads  One loop, on the calling thread.
// Errors   None: what went wrong stands in the report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "diagnose/findings/report.h"
#include "io/http/client_connection.h"

namespace fathom {

struct ProbePlan {
  static constexpr size_t kConversations = 4;
  static constexpr size_t kTurns = 4;
  static constexpr size_t kOpeningWords = 1600;
  static constexpr size_t kReplyWords = 150;
  static constexpr uint64_t kAnswerTokens = 16;

  Endpoint endpoint;
  std::string model;  // empty: the first that the router lists
  std::string api_key;
  size_t most_at_once = 1;
  Duration timeout = std::chrono::seconds(60);      // of one turn
  Duration pause = std::chrono::milliseconds(100);  // between an answer and the next turn
  uint64_t seed = 0;                                // of the filler: another one for every probe
};

// Of the turns that were answered.
struct ProbeTimes {
  uint64_t turns = 0;
  Duration median{};  // time to first token
  Duration p90{};
  uint64_t prompt_tokens = 0;     // as the engines counted them
  uint64_t told = 0;              // turns whose usage told of cached tokens
  uint64_t cached_tokens = 0;     // the sum of what it told
  uint64_t announced = 0;         // turns with x-fathom-cached-tokens
  uint64_t announced_tokens = 0;  // the sum of what it said
};

struct ProbeLevel {
  size_t at_once = 0;
  uint64_t requests = 0;
  uint64_t errors = 0;
  std::string first_problem;
  ProbeTimes first_turns;
  ProbeTimes follow_ups;

  // Median of follow-ups to median of first turns; 0: one of them is missing.
  double Ratio() const;
};

struct ProbeReport {
  std::string model;
  std::string problem;  // why nothing was sent, or why it ended before `most_at_once`; else empty
  std::vector<ProbeLevel> levels;
  uint64_t requests = 0;
  uint64_t prompt_tokens = 0;  // as the engines counted them
  std::string what;            // what was sent, one sentence
  std::vector<SentRequest> sent;
};

ProbeReport RunProbe(const ProbePlan& options);

// 1, 2, 4 ... and at last `most`.
std::vector<size_t> ProbeLevels(size_t most);

}  // namespace fathom
