#include "mock/face.h"

#include <algorithm>
#include <array>

namespace fathom {

bool IsReport(const PageRequest& request) {
  static constexpr std::array<std::string_view, 5> kReports = {
      "/metrics", "/server_info", "/get_server_info", "/prometheus/metrics", "/kv_event_sources"};
  return request.method == "GET" && std::ranges::find(kReports, request.path) != kReports.end();
}

uint32_t ReportedBlockSize(const MockOptions& options, const EngineDriver& rank) {
  return options.block_size_report.value_or(rank.core().options().block_size);
}

}  // namespace fathom
