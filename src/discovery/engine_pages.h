// What does an engine's own page say about its capacity and its load?
//
// Pure readers: text in, EngineReport out; nothing if the page is not that engine's. What a page
// leaves out, writes as None or null, or says in a way that makes no sense, stays unknown.
//
// What pages cannot be trusted with: before vLLM 0.23 the block size can be stale for models whose
// backend changes it, and only its development mode tells of decode context parallelism. Events say
// better.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "fleet/engine_report.h"

namespace fathom {

// vLLM, GET /metrics: cache, load. Says nothing of limits.
std::optional<EngineReport> ReadVllmMetrics(std::string_view page);
// vLLM in development mode, GET /server_info?config_format=json: the limits,
// and how many ranks share a context.
std::optional<EngineReport> ReadVllmServerInfo(std::string_view page);
// vLLM since 0.32, GET /kv_event_sources: that it is one, and its ranks. Says so even where
// --disable-log-stats leaves nothing in /metrics.
std::optional<EngineReport> ReadVllmEventSources(std::string_view page);

// SGLang, GET /server_info (/get_server_info in old versions): everything but load.
std::optional<EngineReport> ReadSglangServerInfo(std::string_view page);
// SGLang since 0.5.8, GET /v1/loads.
std::optional<EngineReport> ReadSglangLoads(std::string_view page);
// SGLang with --enable-metrics, GET /metrics.
std::optional<EngineReport> ReadSglangMetrics(std::string_view page);

// TensorRT-LLM, GET /metrics: iterations since somebody asked last. The newest of each rank counts;
// an empty list is all that an idle engine says.
std::optional<EngineReport> ReadTrtllmMetrics(std::string_view page);

// TensorRT-LLM with return_perf_metrics, GET /prometheus/metrics: the cache.
std::optional<EngineReport> ReadTrtllmPrometheus(std::string_view page);

// GET /metrics of whichever engine it is.
std::optional<EngineReport> ReadMetrics(std::string_view page);

// The longest context of a model by its card in /v1/models; 0 if it does not say.
uint64_t ReadContextLength(std::string_view model_card);

// What `first` says, and what `second` says where it says nothing. Loads are those of `first`.
EngineReport Joined(EngineReport first, const EngineReport& second);

}  // namespace fathom
