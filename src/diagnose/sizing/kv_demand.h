// Does what was cached live until it is asked for again?
//
// The model: a running sequence holds its prompt and, on average, half of its answer. What running
// sequences do not hold keeps blocks of earlier ones, and the engine gives them up least recently
// used first: an idle block lives until as many new tokens have been written as fit into that room.
// The time between turns is taken as exponential around its mean, so the share of follow-ups that
// come in time is 1 - exp(-lifetime / between_turns).
//
// All numbers are of one rank. A fix that raises the share also lowers the rate of new tokens; that
// further gain is not counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "diagnose/sizing/kv_budget.h"

namespace fathom {

struct Workload {
  double sequences = 0;                   // running at once, on average
  std::optional<uint64_t> max_sequences;  // that the engine runs at once, by its settings
  double prompt_tokens = 0;               // of a request, on average, cached ones included
  double output_tokens = 0;
  // New tokens written per second: prompt tokens that were not cached, and output. If it was not
  // measured, requests_per_second x (prompt + output) stands for it: the worst case, no hits.
  std::optional<double> new_tokens_per_second;
  std::optional<double> requests_per_second;
  std::optional<Duration> between_turns;  // from an answer to the next turn of its conversation
};

enum class Retention : uint8_t {
  kUnknown,      // no rate or no time between turns was given
  kComfortable,  // cached blocks live at least twice as long as the time between turns
  kTight,
  kGone,  // most follow-ups come too late
};
std::string_view Name(Retention verdict);

struct KvDemand {
  double active_tokens = 0;    // sequences x (prompt + output / 2); may be more than there are
  double worst_tokens = 0;     // max_sequences x (prompt + output); without a maximum, of sequences
  double retained_tokens = 0;  // what is left for idle blocks, those in host memory included
  double host_tokens = 0;      // of those, in host memory
  double idle_contexts = 0;    // finished conversations that fit into it
  double new_tokens_per_second = 0;  // 0: not known
  std::optional<Duration> lifetime;  // of an idle block; at most kForever
  std::optional<double> in_time;     // share of follow-ups that find their blocks
  Retention verdict = Retention::kUnknown;

  static constexpr Duration kForever = std::chrono::hours(24 * 365);

  // Running sequences alone need more than there is: preemption and queueing.
  bool overcommitted(const KvCapacity& capacity) const {
    return active_tokens > static_cast<double>(capacity.tokens);
  }
};

// `host_tokens` beyond the GPU's: an offload tier holds them.
KvDemand ReckonDemand(const KvCapacity& capacity, const Workload& workload, double host_tokens = 0);

}  // namespace fathom
