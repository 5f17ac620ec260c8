// prefix-caching-off, page-size-one: does the engine keep what could be used again, and say so in
// pieces of a sensible size?
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "diagnose/lint/remedy.h"
#include "diagnose/lint/rules.h"

namespace fathom {
namespace {

Remedy KeepPrefixes(const Plan& plan, const PlannedEngine& engine) {
  const auto& written = engine.settings.prefix_caching.written;
  Remedy remedy;
  switch (engine.program->engine) {
    case EngineKind::kSglang:
      remedy.fix.setting = "(no --disable-radix-cache)";
      break;
    case EngineKind::kTrtllm:
      remedy.fix.setting = "kv_cache_config:\n  enable_block_reuse: true";
      break;
    default:
      remedy.fix.setting = "--enable-prefix-caching";
  }
  const bool has_value = EqualsIgnoreCase(written->value, "false");
  remedy.fix.what =
      has_value ? fmt::format("Set {} of {} to true.", written->name, Called(*engine.program))
                : fmt::format("Start {} without {}.", Called(*engine.program), written->name);
  remedy.fix.cost = "The engine restarts. Cached blocks use only memory that is otherwise free.";
  remedy.fix.verify =
      "The engine reports cached_tokens above 0 when the same prompt is sent twice.";
  if (has_value) remedy.edits = Rewrite(plan, *written, "true");
  return remedy;
}

void CheckPrefixCaching(const Plan& plan, const PlannedEngine& engine, LintFindings& findings) {
  const auto& caching = engine.settings.prefix_caching;
  if (caching.value != false || !caching.written) return;
  Finding finding = MakeFinding(FindingId::kPrefixCachingOff, engine.program->name,
                                fmt::format("{} turns prefix caching off ({})",
                                            Called(*engine.program), caching.written->name));
  if (!engine.routed_by_cache) finding.severity = Severity::kWarning;
  finding.why =
      "The engine computes every prompt from its first token and publishes no KV events: "
      "a router has no cache to route by.";
  finding.place = PlaceOf(caching, *engine.program);
  findings.push_back(WithRemedies(plan, std::move(finding), {KeepPrefixes(plan, engine)}));
}

// The size that its router has, if that is a sensible one.
uint32_t SensibleSize(const Plan& plan, size_t engine) {
  for (const PlannedRouter& router : plan.routers()) {
    const auto size = router.settings.block_size.value;
    if (size > 1u && std::ranges::find(router.engines, engine) != router.engines.end())
      return *size;
  }
  return 16;
}

void CheckPageSize(const Plan& plan, size_t i, LintFindings& findings) {
  const PlannedEngine& engine = plan.engines()[i];
  const auto& size = engine.settings.block_size;
  if (engine.program->engine != EngineKind::kSglang || size.value != 1u) return;
  // By itself, without events, pages of one token harm nobody.
  const bool told = engine.settings.publisher.enabled.value == true;
  if (!engine.routed_by_cache && !told && !size.written) return;
  Finding finding =
      MakeFinding(FindingId::kPageSizeOne, engine.program->name,
                  fmt::format("{} has a page size of 1 token{}", Called(*engine.program),
                              size.written ? "" : ", the default of SGLang"));
  finding.why =
      "Every token is a block with its own hash: events and the router's index are at least 16 "
      "times as large as necessary.";
  finding.place = PlaceOf(size, *engine.program);
  Remedy remedy = SetBlockSize(plan, engine, SensibleSize(plan, i));
  findings.push_back(WithRemedies(plan, std::move(finding), {std::move(remedy)}));
}

}  // namespace

void CheckCaches(const Plan& plan, LintFindings& findings) {
  for (size_t i = 0; i < plan.engines().size(); ++i) {
    if (plan.engines()[i].program->duty == Duty::kDecode) continue;
    CheckPrefixCaching(plan, plan.engines()[i], findings);
    CheckPageSize(plan, i, findings);
  }
}

}  // namespace fathom
