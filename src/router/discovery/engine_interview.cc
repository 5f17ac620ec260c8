#include "router/discovery/engine_interview.h"

#include <algorithm>
#include <utility>

#include "engine/engine_pages.h"

namespace fathom {
namespace {

std::optional<EngineReport> ReadServerInfo(std::string_view page) {
  auto report = ReadSglangServerInfo(page);
  return report ? std::move(report) : ReadVllmServerInfo(page);
}

}  // namespace

Task<EnginePage> EngineInterview::Get(std::string path, Reader reader) {
  EnginePage page;
  const TimePoint now = caller_.loop().now();
  if (now >= end_) co_return page;
  FetchRequest request;
  request.path = std::move(path);
  const std::string& key = worker_.spec().api_key;
  if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
  const TimePoint deadline = now + std::min(patience_, (end_ - now) / 2);
  auto asking = caller_.Fetch(request, deadline);
  auto answer = co_await asking;
  page.settled = answer && answer->status < 500;
  page.gone = !answer && answer.error().cause == NetCause::kRefused;
  page.found = answer && answer->status == 200;
  if (page.found && reader != nullptr) page.report = reader(answer->body);
  co_return page;
}

// Two engines use this path. Old versions of one of them use another path.
Task<EnginePage> EngineInterview::ServerInfo() {
  auto getting = Get("/server_info?config_format=json", ReadServerInfo);
  EnginePage page = co_await getting;
  if (!page.settled || page.found) co_return page;
  auto getting_old = Get("/get_server_info", ReadServerInfo);
  page = co_await getting_old;
  co_return page;
}

Task<EnginePage> EngineInterview::Metrics() { return Get("/metrics", ReadMetrics); }

Task<EnginePage> EngineInterview::SglangLoads() { return Get("/v1/loads", ReadSglangLoads); }

Task<EnginePage> EngineInterview::TrtllmPrometheus() {
  return Get("/prometheus/metrics", ReadTrtllmPrometheus);
}

Task<EnginePage> EngineInterview::VllmEventSources() {
  return Get("/kv_event_sources", ReadVllmEventSources);
}

Task<EnginePage> EngineInterview::HealthGenerate() { return Get("/health_generate", nullptr); }

}  // namespace fathom
