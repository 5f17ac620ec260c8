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
  EngineUsage usage;
  JsonScanner scanner(json);
  for (;;) {
    const auto member = scanner.Next();
    if (!member) return std::nullopt;
    if (!*member) break;
    const auto& [key, value] = **member;
    if (JsonKeyIs(key, "prompt_tokens")) {
      prompt_tokens = ParseDecimal(value);
    } else if (JsonKeyIs(key, "prompt_tokens_details")) {
      usage.cached_tokens = ReadCachedTokens(value);
    }
  }
  if (!prompt_tokens) return std::nullopt;
  usage.prompt_tokens = *prompt_tokens;
  return usage;
}

}  // namespace fathom
