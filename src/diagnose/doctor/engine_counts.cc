#include "diagnose/doctor/engine_counts.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace fathom {
namespace {

// Each by the names that vLLM, SGLang and TensorRT-LLM have for it, newer ones first.
using Names = std::array<std::string_view, 4>;

std::optional<double> Read(const MetricsPage& page, const Names& names) {
  return page.SumOfFirst(names);
}

Observations Seen(const MetricsPage& page, const Names& names) {
  for (const std::string_view name : names) {
    const Observations seen = page.Histogram(name);
    if (seen.count > 0) return seen;
  }
  return {};
}

std::optional<double> Largest(const MetricsPage& page, const Names& names) {
  for (const std::string_view name : names) {
    if (const auto value = page.Largest(name)) return value;
  }
  return std::nullopt;
}

std::optional<double> Share(std::optional<double> value) {
  return value ? std::optional(std::clamp(*value, 0.0, 1.0)) : std::nullopt;
}

std::optional<double> Since(std::optional<double> now, std::optional<double> before) {
  if (!now || !before || *now < *before) return now;
  return *now - *before;
}

}  // namespace

EngineCounts EngineCounts::Since(const EngineCounts& earlier) const {
  EngineCounts since;
  for (const auto member :
       {&EngineCounts::prefix_queries, &EngineCounts::prefix_hits, &EngineCounts::prompt_tokens,
        &EngineCounts::generated_tokens, &EngineCounts::preemptions, &EngineCounts::evicted_tokens,
        &EngineCounts::reused_blocks, &EngineCounts::missed_blocks,
        &EngineCounts::finished_requests}) {
    since.*member = fathom::Since(this->*member, earlier.*member);
  }
  since.first_token = first_token.Since(earlier.first_token);
  since.queued = queued.Since(earlier.queued);
  since.prompt_length = prompt_length.Since(earlier.prompt_length);
  since.answer_length = answer_length.Since(earlier.answer_length);
  return since;
}

std::optional<double> EngineCounts::HitRate() const {
  if (prefix_queries && prefix_hits && *prefix_queries > 0) {
    return Share(*prefix_hits / *prefix_queries);
  }
  if (reused_blocks && missed_blocks && *reused_blocks + *missed_blocks > 0) {
    return Share(*reused_blocks / (*reused_blocks + *missed_blocks));
  }
  return std::nullopt;
}

EngineCounts ReadCounts(const MetricsPage& page) {
  EngineCounts counts;
  counts.prompt_tokens = Read(page, {"vllm:prompt_tokens_total", "sglang:prompt_tokens_total",
                                     "trtllm_prompt_tokens_total"});
  counts.prefix_queries =
      Read(page, {"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total",
                  "sglang:prompt_tokens_total", "trtllm_prompt_tokens_total"});
  counts.prefix_hits =
      Read(page, {"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total",
                  "sglang:cached_tokens_total", "trtllm_prompt_cached_tokens_total"});
  counts.generated_tokens =
      Read(page, {"vllm:generation_tokens_total", "sglang:generation_tokens_total",
                  "trtllm_generation_tokens_total"});
  counts.preemptions =
      Read(page, {"vllm:num_preemptions_total", "sglang:num_retracted_requests_total",
                  "sglang:num_retracted_reqs"});
  counts.evicted_tokens = Read(page, {"sglang:evicted_tokens_total"});
  counts.reused_blocks = Read(page, {"trtllm_kv_cache_reused_blocks_total"});
  counts.missed_blocks = Read(page, {"trtllm_kv_cache_missed_blocks_total"});
  counts.finished_requests = Read(page, {"vllm:request_success_total", "sglang:num_requests_total",
                                         "trtllm_request_success_total"});
  counts.first_token =
      Seen(page, {"vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds",
                  "trtllm_time_to_first_token_seconds"});
  counts.queued = Seen(page, {"vllm:request_queue_time_seconds", "sglang:queue_time_seconds",
                              "trtllm_request_queue_time_seconds"});
  counts.prompt_length =
      Seen(page, {"vllm:request_prompt_tokens", "sglang:prompt_tokens_histogram"});
  counts.answer_length =
      Seen(page, {"vllm:request_generation_tokens", "sglang:generation_tokens_histogram"});
  return counts;
}

EngineLevels ReadLevels(const MetricsPage& page) {
  EngineLevels levels;
  levels.running = Read(page, {"vllm:num_requests_running", "sglang:num_running_reqs",
                               "trtllm_num_requests_running"});
  levels.waiting = Read(
      page, {"vllm:num_requests_waiting", "sglang:num_queue_reqs", "trtllm_num_requests_waiting"});
  levels.cache_usage = Share(Largest(page, {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc",
                                            "sglang:token_usage", "trtllm_kv_cache_utilization"}));
  levels.hit_rate = Share(Largest(page, {"sglang:cache_hit_rate", "trtllm_kv_cache_hit_rate"}));
  levels.evictable_tokens = Read(page, {"sglang:kv_evictable_tokens"});
  levels.memory_fraction = page.Label("vllm:cache_config_info", "gpu_memory_utilization");
  levels.cache_dtype = page.Label("vllm:cache_config_info", "cache_dtype");
  return levels;
}

}  // namespace fathom
