// router-mode-missing, kv-events-unused: does the router look at caches, and at what is known of
// them?
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "diagnose/lint/remedy.h"
#include "diagnose/lint/rules.h"

namespace fathom {
namespace {

bool HasMode(const Program& program) {
  return program.Flag("--router-mode") != nullptr || program.Variable("DYN_ROUTER_MODE") != nullptr;
}

bool IsKvSetting(const Written& written) {
  return written.name.contains("KV_CACHE_BLOCK_SIZE") || written.name.contains("ROUTER_KV") ||
         written.name.contains("KV_EVENTS") || written.name.contains("kv-cache-block-size") ||
         written.name.contains("router-kv");
}

// Somebody wanted routing by cache: the frontend has a setting that only it reads, or the engines
// publish events.
bool WantsCaches(const Plan& plan, const PlannedRouter& router) {
  return std::ranges::any_of(router.program->flags, IsKvSetting) ||
         std::ranges::any_of(router.program->variables, IsKvSetting) ||
         std::ranges::any_of(router.engines, [&](size_t i) {
           const auto& enabled = plan.engines()[i].settings.publisher.enabled;
           return enabled.value == true && enabled.written;
         });
}

// One worker needs no choice, nor does one of each duty.
bool HasChoice(const Plan& plan, const PlannedRouter& router) {
  std::map<Duty, uint64_t> replicas;
  for (const size_t i : router.engines) {
    const Program& engine = *plan.engines()[i].program;
    replicas[engine.duty] += engine.replicas;
  }
  return replicas.empty() ||
         std::ranges::any_of(replicas, [](const auto& workers) { return workers.second != 1; });
}

bool WorkersDecide(const Plan& plan, const PlannedRouter& router) {
  return std::ranges::any_of(router.engines,
                             [&](size_t i) { return HasMode(*plan.engines()[i].program); });
}

Remedy RouteByCache(const Plan& plan, const Program& program) {
  Remedy remedy = SetEither(plan, program, "DYN_ROUTER_MODE", "--router-mode", "kv", "");
  remedy.fix.what = fmt::format("Set {} of {} to kv (or to round-robin, if that is what you want).",
                                remedy.fix.what, Called(program));
  remedy.fix.setting = "- name: DYN_ROUTER_MODE\n  value: kv";
  remedy.fix.cost = "The frontend restarts.";
  remedy.fix.verify = "The frontend's log has \"Selected worker\" lines with cached blocks.";
  return remedy;
}

void CheckMode(const Plan& plan, const PlannedRouter& router, LintFindings& findings) {
  const Program& program = *router.program;
  if (program.role != ProgramRole::kDynamoFrontend || HasMode(program)) return;
  if (router.settings.mode.written || WorkersDecide(plan, router)) return;
  const bool wanted = WantsCaches(plan, router);
  if (!wanted && !HasChoice(plan, router)) return;
  Finding finding =
      MakeFinding(FindingId::kRouterModeMissing, program.name,
                  fmt::format("{} has no DYN_ROUTER_MODE: it routes round-robin", Called(program)));
  finding.severity = wanted ? Severity::kError : Severity::kWarning;
  finding.why = fmt::format(
      "Dynamo's frontend routes round-robin by default, in all versions up to 1.5 at least{}. "
      "Fathom's "
      "default is kv.",
      wanted ? "; the settings for KV routing have no effect then" : "");
  finding.place = program.place;
  // Without a sign of what is wanted it is not ours to choose.
  findings.push_back(WithRemedies(plan, std::move(finding), {RouteByCache(plan, program)},
                                  wanted ? Safety::kSafe : Safety::kDecide));
}

Remedy UseEvents(const Plan& plan, const PlannedRouter& router) {
  const auto& written = router.settings.kv_events.written;
  const bool has_value = written && EqualsIgnoreCase(written->value, "false");
  Remedy remedy;
  remedy.fix.what =
      has_value ? fmt::format("Set {} of {} to true.", written->name, Called(*router.program))
      : written ? fmt::format("Start {} without {}.", Called(*router.program), written->name)
                : fmt::format("Turn KV events on in {}.", Called(*router.program));
  remedy.fix.setting = has_value ? fmt::format("{}=true", written->name) : "--router-kv-events";
  remedy.fix.cost =
      "The engines must publish KV events; without them the router cannot see the caches.";
  remedy.fix.verify = "The router's index grows while the engines serve.";
  if (has_value) remedy.edits = Rewrite(plan, *written, "true");
  return remedy;
}

void CheckEvents(const Plan& plan, const PlannedRouter& router, LintFindings& findings) {
  if (!router.by_cache() || router.by_events()) return;
  const auto& events = router.settings.kv_events;
  Finding finding =
      MakeFinding(FindingId::kKvEventsUnused, router.program->name,
                  fmt::format("{} routes by KV cache but does not read KV events ({})",
                              Called(*router.program), Origin(events)));
  finding.why =
      "It estimates the caches from its own requests: it does not see what engines evict, nor what "
      "they had cached before.";
  finding.place = PlaceOf(events, *router.program);
  // Engines without a publisher make it the right setting.
  findings.push_back(
      WithRemedies(plan, std::move(finding), {UseEvents(plan, router)}, Safety::kDecide));
}

}  // namespace

void CheckRouters(const Plan& plan, LintFindings& findings) {
  for (const PlannedRouter& router : plan.routers()) {
    CheckMode(plan, router, findings);
    CheckEvents(plan, router, findings);
  }
}

}  // namespace fathom
