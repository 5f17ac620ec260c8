#include "lab/mock/face.h"

#include <fmt/format.h>

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

std::optional<bool> ReportedPrefixCaching(const MockOptions& options, bool always) {
  if (!options.tell_prefix_caching) return std::nullopt;
  const bool news = !options.prefix_caching || options.prefix_caching_was_off;
  return always || news ? std::optional(options.prefix_caching) : std::nullopt;
}

void AddMockCounters(Exposition& out, const MockOptions& options, const EngineRanks& ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const EngineCounters all = ranks.at(rank).statistics().counters;
    const Labels of = {{"model_name", options.models.front()}, {"rank", fmt::format("{}", rank)}};
    const auto counter = [&](std::string_view name, std::string_view help, uint64_t value) {
      out.AddCounter(name, help, of, static_cast<double>(value));
    };
    counter("mock:prompt_tokens_total", "Tokens of prompts that were started.", all.prompt_tokens);
    counter("mock:cached_prompt_tokens_total", "Of those, found in the cache.", all.cached_tokens);
    counter("mock:recomputed_prompt_tokens_total",
            "Of those, not found, though an engine of this process had computed them before.",
            all.recomputed_tokens);
  }
}

}  // namespace fathom
