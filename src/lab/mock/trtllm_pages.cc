// TensorRT-LLM, as far as a router looks at it.
#include <fmt/format.h>

#include "codec/json.h"
#include "lab/mock/face.h"
#include "lab/mock/visit.h"

namespace fathom {
namespace {

void AddIteration(JsonWriter& w, const Iteration& iteration, const EngineDriver& driver,
                  const MockOptions& options, size_t rank) {
  const uint64_t blocks = driver.core().pool().usable_blocks();
  w.BeginObject().Key("iter").Unsigned(iteration.number).Key("attentionDpRank").Unsigned(rank);
  w.Key("iterLatencyMS").Number(Seconds(iteration.duration) * 1000);
  w.Key("numActiveRequests").Unsigned(iteration.running);
  w.Key("numQueuedRequests").Unsigned(iteration.waiting);
  w.Key("maxNumActiveRequests").Unsigned(options.max_num_seqs);
  w.Key("kvCacheStats").BeginObject().Key("maxNumBlocks").Unsigned(blocks);
  w.Key("freeNumBlocks").Unsigned(blocks - iteration.used_blocks);
  w.Key("usedNumBlocks").Unsigned(iteration.used_blocks);
  const uint32_t block_size = ReportedBlockSize(options, driver);
  if (block_size > 0) w.Key("tokensPerBlock").Unsigned(block_size);
  w.EndObject();
  w.Key("inflightBatchingStats").BeginObject();
  w.Key("numGenRequests").Unsigned(iteration.decoding);
  w.Key("numCtxTokens").Unsigned(iteration.new_tokens).EndObject().EndObject();
}

// Reading drains it.
std::string Iterations(const MockOptions& options, EngineRanks& ranks) {
  if (!options.iteration_statistics) return "[]";
  JsonWriter w;
  w.BeginArray();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Iteration& iteration : ranks.at(rank).TakeIterations()) {
      AddIteration(w, iteration, ranks.at(rank), options, rank);
    }
  }
  w.EndArray();
  return w.Take();
}

// What concerns the cache is there once the engine has run.
Answer TrtllmMetrics(const MockOptions& options, const EngineRanks& ranks) {
  Exposition out;
  const EngineStatistics now = ranks.Statistics();
  const Labels of = {{"model_name", options.models.front()}, {"engine_type", "unified"}};
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    out.AddGauge(name, help, of, value);
  };
  gauge("trtllm_num_requests_running", "Requests being processed.",
        static_cast<double>(now.running));
  gauge("trtllm_num_requests_waiting", "Requests waiting.", static_cast<double>(now.waiting));
  if (now.counters.steps > 0) {
    const auto blocks = static_cast<double>(ranks.at(0).core().pool().usable_blocks());
    const uint32_t block_size = ReportedBlockSize(options, ranks.at(0));
    if (block_size > 0) gauge("trtllm_kv_cache_tokens_per_block", "Tokens per block.", block_size);
    gauge("trtllm_kv_cache_max_blocks", "Blocks.", blocks);
    gauge("trtllm_kv_cache_used_blocks", "Blocks in use.", blocks * now.cache_usage);
    gauge("trtllm_kv_cache_free_blocks", "Blocks not in use.", blocks * (1 - now.cache_usage));
    gauge("trtllm_kv_cache_utilization", "Share of the blocks in use.", now.cache_usage);
  }
  out.AddCounter("trtllm_prompt_cached_tokens_total", "Cached prompt tokens.", of,
                 static_cast<double>(now.counters.cached_tokens));
  if (const auto caches = ReportedPrefixCaching(options, false)) {
    out.AddGauge("trtllm_kv_cache_config_info", "Configuration of the KV cache.",
                 {{"enable_block_reuse", *caches ? "True" : "False"}}, 1);
  }
  AddMockCounters(out, options, ranks);
  return MetricsAnswer(out);
}

}  // namespace

std::optional<Answer> TrtllmPage(const PageRequest& request, const MockOptions& options,
                                 EngineRanks* ranks) {
  if (request.Is("GET", "/server_info")) return JsonAnswer(200, R"({"disaggregated_params":null})");
  if (request.Is("POST", "/kv_cache_events")) {
    const bool told = ranks != nullptr && ranks->feed() != nullptr;
    return JsonAnswer(200, told ? ranks->feed()->Poll() : "[]");
  }
  if (ranks == nullptr) return std::nullopt;
  if (request.Is("GET", "/metrics")) return JsonAnswer(200, Iterations(options, *ranks));
  if (request.Is("GET", "/prometheus/metrics")) return TrtllmMetrics(options, *ranks);
  return std::nullopt;
}

}  // namespace fathom
