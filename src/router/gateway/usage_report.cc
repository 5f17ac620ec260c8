#include "router/gateway/usage_report.h"

#include "base/text.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

std::optional<uint64_t> ReadCachedTokens(std::string_view details) {
  std::optional<uint64_t> cached;
  JsonScanner scanner(details);
  for (;;) {
    const auto member = scanner.Next();
    if (!member || !*member) return cached;
    if (JsonKeyIs((*member)->key, "cached_tokens")) cached = ParseDecimal((*member)->value);
  }
}

}  // namespace

std::optional<EngineUsage> ReadUsage(std::string_view json) {
  std::optional<uint64_t> prompt_tokens;
  uint64_t beside = 0;  // prompt tokens that the API counts apart
  EngineUsage usage;
  JsonScanner scanner(json);
  for (;;) {
    const auto member = scanner.Next();
    if (!member) return std::nullopt;
    if (!*member) break;
    const auto& [key, value] = **member;
    if (JsonKeyIs(key, "prompt_tokens") || JsonKeyIs(key, "input_tokens")) {
      prompt_tokens = ParseDecimal(value);
    } else if (JsonKeyIs(key, "completion_tokens") || JsonKeyIs(key, "output_tokens")) {
      usage.output_tokens = ParseDecimal(value).value_or(0);
    } else if (JsonKeyIs(key, "prompt_tokens_details") || JsonKeyIs(key, "input_tokens_details")) {
      usage.cached_tokens = ReadCachedTokens(value);
    } else if (JsonKeyIs(key, "cached_tokens")) {
      usage.cached_tokens = ParseDecimal(value);
    } else if (JsonKeyIs(key, "cache_read_input_tokens")) {
      usage.cached_tokens = ParseDecimal(value);
      beside += usage.cached_tokens.value_or(0);
    } else if (JsonKeyIs(key, "cache_creation_input_tokens")) {
      beside += ParseDecimal(value).value_or(0);
    }
  }
  if (!prompt_tokens) return std::nullopt;
  usage.prompt_tokens = *prompt_tokens + beside;
  return usage;
}

}  // namespace fathom
