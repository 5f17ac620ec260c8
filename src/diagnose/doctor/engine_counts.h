// What has an engine counted since it started, and how full is it now?
//
// From its page of metrics; two looks some seconds apart give rates.
#pragma once

#include <optional>
#include <string>

#include "diagnose/doctor/metrics_page.h"
#include "engine/engine_report.h"

namespace fathom {

// Nothing: the engine does not say.
struct EngineCounts {
  std::optional<double> prefix_queries;  // tokens
  std::optional<double> prefix_hits;     // tokens
  std::optional<double> prompt_tokens;
  std::optional<double> generated_tokens;
  std::optional<double> preemptions;  // sequences, "retractions" in SGLang
  std::optional<double> evicted_tokens;
  std::optional<double> reused_blocks;  // TensorRT-LLM
  std::optional<double> missed_blocks;
  std::optional<double> finished_requests;
  Observations first_token;  // seconds
  Observations queued;       // seconds
  Observations prompt_length;
  Observations answer_length;

  // Between two looks; all of it if the engine has begun anew since.
  EngineCounts Since(const EngineCounts& earlier) const;
  // Share of the prompts' tokens that were found in the cache; nothing before the first.
  std::optional<double> HitRate() const;
  bool operator==(const EngineCounts&) const = default;
};

struct EngineLevels {
  std::optional<double> running;  // sequences, all ranks together
  std::optional<double> waiting;
  std::optional<double> cache_usage;  // 0 to 1, of the fullest rank
  std::optional<double> hit_rate;     // 0 to 1, as the engine reckons it
  std::optional<double> evictable_tokens;
  std::string memory_fraction;  // as the engine has it, "0.92"
  std::string cache_dtype;      // "auto", "fp8"
  bool operator==(const EngineLevels&) const = default;
};

EngineCounts ReadCounts(const MetricsPage& page);
EngineLevels ReadLevels(const MetricsPage& page);

}  // namespace fathom
