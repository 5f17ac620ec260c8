// What does an engine's own page report about its capacity and its load?
//
// Pure readers: text in, EngineReport out; nullopt if the page is not that engine's. A value that
// is missing, None, null or invalid stays unknown.
//
// Pages are not reliable in two cases: before vLLM 0.23 the block size can be stale for models
// whose backend changes it, and only its development mode reports decode context parallelism.
// Events are more reliable.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/engine_report.h"

namespace fathom {

// vLLM, GET /metrics: cache and load, no limits.
std::optional<EngineReport> ReadVllmMetrics(std::string_view page);
// vLLM in development mode, GET /server_info?config_format=json: the limits, and how many ranks
// share a context.
std::optional<EngineReport> ReadVllmServerInfo(std::string_view page);
// vLLM since 0.32, GET /kv_event_sources: the kind of engine, and its ranks. Also works with
// --disable-log-stats, which leaves /metrics empty.
std::optional<EngineReport> ReadVllmEventSources(std::string_view page);

// SGLang, GET /server_info (/get_server_info in old versions): everything but load.
std::optional<EngineReport> ReadSglangServerInfo(std::string_view page);
// SGLang since 0.5.8, GET /v1/loads.
std::optional<EngineReport> ReadSglangLoads(std::string_view page);
// SGLang with --enable-metrics, GET /metrics.
std::optional<EngineReport> ReadSglangMetrics(std::string_view page);

// TensorRT-LLM, GET /metrics: iterations since the last read. The newest of each rank counts; an
// idle engine returns an empty list.
std::optional<EngineReport> ReadTrtllmMetrics(std::string_view page);

// TensorRT-LLM with return_perf_metrics, GET /prometheus/metrics: the cache.
std::optional<EngineReport> ReadTrtllmPrometheus(std::string_view page);

// GET /metrics of any engine.
std::optional<EngineReport> ReadMetrics(std::string_view page);

// The longest context of a model by its card in /v1/models; 0 if the card does not have it.
uint64_t ReadContextLength(std::string_view model_card);

// The values of `first`; those that it lacks from `second`. Loads are those of `first`.
EngineReport Joined(EngineReport first, const EngineReport& second);

}  // namespace fathom
