#include "lab/mock/face.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace fathom {

bool IsReport(const PageRequest& request) {
  static constexpr std::array<std::string_view, 5> kReports = {
      "/metrics", "/server_info", "/get_server_info", "/prometheus/metrics", "/kv_event_sources"};
  return request.method == "GET" && std::ranges::find(kReports, request.path) != kReports.end();
}

std::string_view MethodOfPage(MockedEngine engine, std::string_view path) {
  struct Page {
    std::string_view path;
    std::string_view method;
    std::string_view engines;  // v, s, t
  };
  static constexpr std::array<Page, 17> kPages = {{{"/health", "GET", "vst"},
                                                   {"/v1/models", "GET", "vst"},
                                                   {"/version", "GET", "vst"},
                                                   {"/metrics", "GET", "vst"},
                                                   {"/server_info", "GET", "vst"},
                                                   {"/load", "GET", "v"},
                                                   {"/ping", "GET", "vs"},
                                                   {"/kv_event_sources", "GET", "v"},
                                                   {"/reset_prefix_cache", "POST", "v"},
                                                   {"/health_generate", "GET", "st"},
                                                   {"/get_server_info", "GET", "s"},
                                                   {"/model_info", "GET", "s"},
                                                   {"/get_model_info", "GET", "s"},
                                                   {"/v1/loads", "GET", "s"},
                                                   {"/flush_cache", "POST", "s"},
                                                   {"/prometheus/metrics", "GET", "t"},
                                                   {"/kv_cache_events", "POST", "t"}}};
  const char letter = "vst"[static_cast<size_t>(engine)];
  const auto* page = std::ranges::find(kPages, path, &Page::path);
  return page != kPages.end() && page->engines.contains(letter) ? page->method : std::string_view();
}

Refusal UnknownModel(const MockOptions& options, std::string_view model) {
  if (options.engine != MockedEngine::kVllm) {
    return {.status = 404,
            .type = "NotFoundError",
            .message = fmt::format("The model '{}' does not exist", model),
            .param = "model"};
  }
  return {.status = 404,
          .type = "NotFoundError",
          .message = fmt::format("The model `{}` does not exist. Valid aliases: {}.", model,
                                 fmt::join(options.models, ", ")),
          .param = "model"};
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
