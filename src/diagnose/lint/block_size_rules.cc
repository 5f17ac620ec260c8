// block-size-mismatch, block-size-missing, block-size-conflict: do router and engines cut prompts
// at the same places?
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/lint/remedy.h"
#include "diagnose/lint/rules.h"

namespace fathom {
namespace {

constexpr std::string_view kFrontendVersions =
    "This applies to versions of Dynamo's frontend that hash with their own setting (seen in "
    "0.9.0); "
    "since "
    "1.5 it takes the size from its workers and ignores the setting.";

// Engines with one size, in the order of the plan.
using BySize = std::map<uint32_t, std::vector<const PlannedEngine*>>;

// Whether a wrong size of its own would hurt.
bool HasSizeOfItsOwn(const PlannedRouter& router) {
  constexpr std::array kTakesItFromWorkers = {1u, 5u};
  switch (router.program->role) {
    case ProgramRole::kDynamoFrontend:
      return router.by_cache() && !AtLeast(router.program->version, kTakesItFromWorkers);
    case ProgramRole::kDynamoRouter:
      return true;
    default:
      return router.by_cache() && router.settings.block_size.written.has_value();
  }
}

std::string WhyOfMismatch(const PlannedRouter& router) {
  constexpr std::string_view kEffect =
      "Blocks of different sizes have different hashes: no prefix is ever found, and the router "
      "falls back to load balancing while every request still succeeds.";
  switch (router.program->role) {
    case ProgramRole::kDynamoFrontend:
      return fmt::format("{} {}", kEffect, kFrontendVersions);
    case ProgramRole::kDynamoRouter:
      return fmt::format("{} The standalone router never learns the size from its workers.",
                         kEffect);
    default:
      return "Fathom uses the size that is set and routes engines with another size by load; "
             "without "
             "the "
             "setting it learns the size from them.";
  }
}

// TensorRT-LLM's size stands in a file of its own, which is often not among those that are read,
// and which seldom sets it.
bool IsAssumed(const PlannedRouter& router, const PlannedEngine& engine) {
  return engine.program->engine == EngineKind::kTrtllm && engine.program->unseen_file &&
         !engine.settings.block_size.value && !router.settings.block_size.written;
}

std::string Describe(const PlannedEngine& engine) {
  const auto& size = engine.settings.block_size;
  if (!size.value) {
    return fmt::format(
        "{}: {} tokens per block (the default of {}, unless its engine file says "
        "otherwise, which is not among these)",
        Called(*engine.program), *UsualBlockSize(engine.program->engine),
        Brand(engine.program->engine));
  }
  return fmt::format("{}: {} tokens per block ({})", Called(*engine.program), *size.value,
                     size.written
                         ? Origin(size)
                         : fmt::format("the default of {}", Brand(engine.program->engine)));
}

std::string Describe(const PlannedRouter& router) {
  const auto& size = router.settings.block_size;
  return fmt::format("{}: {} tokens per block ({})", Called(*router.program), *size.value,
                     Origin(size));
}

// Those whose blocks it has to match: decode workers do not matter where others do the prefill.
std::vector<const PlannedEngine*> Followed(const Plan& plan, const PlannedRouter& router) {
  std::vector<const PlannedEngine*> engines;
  for (const size_t i : router.engines) engines.push_back(&plan.engines()[i]);
  const auto does = [](Duty duty) {
    return [duty](const PlannedEngine* engine) { return engine->program->duty == duty; };
  };
  if (std::ranges::any_of(engines, does(Duty::kPrefill))) {
    std::erase_if(engines, does(Duty::kDecode));
  }
  return engines;
}

BySize EnginesBySize(const Plan& plan, const PlannedRouter& router) {
  BySize sizes;
  for (const PlannedEngine* engine : Followed(plan, router)) {
    const auto size = IsAssumed(router, *engine) ? UsualBlockSize(engine->program->engine)
                                                 : engine->settings.block_size.value;
    if (size) sizes[*size].push_back(engine);
  }
  return sizes;
}

std::string CommentFor(const PlannedEngine& engine, uint32_t theirs) {
  return fmt::format(
      "Must match {} {}{}", Brand(engine.program->engine), BlockSizeSetting(engine.program->engine),
      engine.settings.block_size.written ? "" : fmt::format(" (default: {})", theirs));
}

// "TRTLLMWorker (TensorRT-LLM)"
std::string CalledWithBrand(const Program& engine) {
  std::string called = Called(engine);
  const std::string_view brand = Brand(engine.engine);
  return called.contains(brand) ? called : fmt::format("{} ({})", called, brand);
}

// One remedy for all of them: half of it would be a conflict.
Remedy SetBlockSizes(const Plan& plan, std::span<const PlannedEngine* const> engines,
                     uint32_t size) {
  Remedy remedy = SetBlockSize(plan, *engines.front(), size);
  if (engines.size() == 1) return remedy;
  bool all = !remedy.edits.empty();
  for (const PlannedEngine* engine : engines.subspan(1)) {
    Remedy more = SetBlockSize(plan, *engine, size);
    if (more.edits.empty()) all = false;
    remedy.edits.insert(remedy.edits.end(), more.edits.begin(), more.edits.end());
  }
  if (!all) remedy.edits.clear();
  remedy.fix.what = fmt::format("Set the block size of {} and {} more to {}: {} {}.",
                                Called(*engines.front()->program), engines.size() - 1, size,
                                BlockSizeSetting(engines.front()->program->engine), size);
  return remedy;
}

// Where engines disagree with each other, a router with the size of some loses the others: these
// engines are set to the router's size, or Fathom serves both.
std::vector<Remedy> DividedRemedies(const Plan& plan, const PlannedRouter& router,
                                    std::span<const PlannedEngine* const> engines) {
  std::vector<Remedy> remedies = {SetBlockSizes(plan, engines, *router.settings.block_size.value)};
  if (router.program->role != ProgramRole::kFathom) return remedies;
  Remedy both;
  both.fix.what =
      fmt::format("Remove {} and serve both sizes side by side with --block-size-conflict=mixed.",
                  router.settings.block_size.written->name);
  both.fix.setting = "--block-size-conflict=mixed";
  both.fix.cost = "The router restarts; engines and their caches are untouched.";
  both.fix.verify = "/health: every worker is ready, each with its own block_size.";
  remedies.push_back(std::move(both));
  return remedies;
}

// Blocks of one token are never intended: there the engine is fixed first.
std::vector<Remedy> MismatchRemedies(const Plan& plan, const PlannedRouter& router,
                                     std::span<const PlannedEngine* const> engines,
                                     uint32_t theirs) {
  Remedy here = SetBlockSize(plan, router, theirs, CommentFor(*engines.front(), theirs));
  if (router.program->role == ProgramRole::kFathom) {
    here.fix.what =
        fmt::format("Remove {}: Fathom learns the size from its engines. Or set it to {}.",
                    router.settings.block_size.written->name, theirs);
  }
  Remedy there = SetBlockSizes(plan, engines, *router.settings.block_size.value);
  std::vector<Remedy> remedies;
  const bool engine_first = theirs == 1;
  remedies.push_back(engine_first ? there : here);
  remedies.push_back(engine_first ? here : there);
  return remedies;
}

void AddMismatch(const Plan& plan, const PlannedRouter& router, const BySize::value_type& others,
                 Safety safety, LintFindings& findings) {
  const auto& [theirs, engines] = others;
  const PlannedEngine& first = *engines.front();
  const uint32_t ours = *router.settings.block_size.value;
  Finding finding = MakeFinding(
      FindingId::kBlockSizeMismatch, router.program->name,
      fmt::format("{} uses a block size of {} tokens, {} uses {}", Called(*router.program), ours,
                  CalledWithBrand(*first.program), theirs));
  finding.why = WhyOfMismatch(router);
  finding.place = PlaceOf(router.settings.block_size, *router.program);
  finding.evidence.push_back(Describe(router));
  for (const PlannedEngine* engine : engines) finding.evidence.push_back(Describe(*engine));
  std::vector<Remedy> remedies = safety == Safety::kSafe
                                     ? MismatchRemedies(plan, router, engines, theirs)
                                     : DividedRemedies(plan, router, engines);
  findings.push_back(WithRemedies(plan, std::move(finding), std::move(remedies), safety));
}

// True if there was one.
bool CheckMismatch(const Plan& plan, const PlannedRouter& router, LintFindings& findings) {
  const auto ours = router.settings.block_size.value;
  if (!ours) return false;
  const BySize sizes = EnginesBySize(plan, router);
  // Engines that disagree with each other cannot all be followed.
  const Safety safety = sizes.size() == 1 ? Safety::kSafe : Safety::kDecide;
  bool found = false;
  for (const auto& others : sizes) {
    if (others.first == *ours) continue;
    AddMismatch(plan, router, others, safety, findings);
    found = true;
  }
  return found;
}

// What is known of the engines behind a frontend without a size: enough to call 16 right?
struct Doubt {
  std::string message;
  std::optional<uint32_t> size;  // that should be set, where it is known
};

std::optional<Doubt> DoubtOf(const Plan& plan, const PlannedRouter& router) {
  const Program& program = *router.program;
  const auto ours = router.settings.block_size.value;
  for (const PlannedEngine* engine : Followed(plan, router)) {
    if (engine->settings.block_size.value || IsAssumed(router, *engine)) continue;
    return Doubt{
        fmt::format("{} assumes a block size of {} tokens; these files do not state that of {}",
                    Called(program), ours.value_or(16), Called(*engine->program)),
        std::nullopt};
  }
  if (!router.engines.empty()) return std::nullopt;
  const auto usual = UsualBlockSize(program.engine);
  if (usual == ours && usual) return std::nullopt;
  if (!usual) {
    return Doubt{fmt::format("{} routes by KV cache and assumes a block size of {} tokens; its "
                             "engines are not in these files",
                             Called(program), ours.value_or(16)),
                 std::nullopt};
  }
  return Doubt{fmt::format("{} routes by KV cache and assumes a block size of {} tokens; its image "
                           "is for {}, whose block size is {}",
                           Called(program), ours.value_or(16), Brand(program.engine), *usual),
               usual};
}

std::vector<Remedy> MissingRemedies(const Plan& plan, const PlannedRouter& router,
                                    const Doubt& doubt) {
  const EngineKind engine = router.program->engine;
  if (doubt.size && *doubt.size > 1) {
    return {SetBlockSize(plan, router, *doubt.size,
                         fmt::format("Must match {} {} (default: {})", Brand(engine),
                                     BlockSizeSetting(engine), *doubt.size))};
  }
  Remedy remedy;
  remedy.fix.what = fmt::format(
      "Set DYN_KV_CACHE_BLOCK_SIZE of {} to the engines' block size: vLLM --block-size (default "
      "16), "
      "SGLang --page-size (default 1: set 16), TensorRT-LLM tokens_per_block (default 32).",
      Called(*router.program));
  remedy.fix.setting = "- name: DYN_KV_CACHE_BLOCK_SIZE\n  value: \"16\"";
  remedy.fix.cost = "The router restarts; engines and their caches are untouched.";
  remedy.fix.verify = "Check the frontend's file together with those of its workers.";
  return {remedy};
}

void CheckMissing(const Plan& plan, const PlannedRouter& router, LintFindings& findings) {
  if (router.program->role != ProgramRole::kDynamoFrontend) return;
  if (router.settings.block_size.written) return;
  const auto doubt = DoubtOf(plan, router);
  if (!doubt) return;
  Finding finding = MakeFinding(FindingId::kBlockSizeMissing, router.program->name, doubt->message);
  finding.why = fmt::format(
      "If the size differs from the engines', no prefix is ever found and no error is reported. {}",
      kFrontendVersions);
  finding.place = router.program->place;
  finding.evidence.push_back(
      fmt::format("{}: nothing sets DYN_KV_CACHE_BLOCK_SIZE or "
                  "--kv-cache-block-size",
                  ToText(router.program->place)));
  if (!router.program->image.empty()) {
    finding.evidence.push_back(fmt::format("Its image: {}", router.program->image));
  }
  findings.push_back(WithRemedies(plan, std::move(finding), MissingRemedies(plan, router, *doubt)));
}

// Blocks go from prefill to decode workers in whatever sizes these agree on.
bool OneModel(const PlannedEngine& a, const PlannedEngine& b, bool routed) {
  if (a.program->duty != b.program->duty) return false;
  const std::string& x = a.settings.model;
  const std::string& y = b.settings.model;
  return (routed && (x.empty() || y.empty())) || (x == y && !x.empty());
}

void AddConflict(const Plan& plan, const PlannedEngine& a, const PlannedEngine& b,
                 LintFindings& findings) {
  Finding finding =
      MakeFinding(FindingId::kBlockSizeConflict, b.program->name,
                  fmt::format("{} has a block size of {} tokens, {} of the same fleet has {}",
                              Called(*b.program), *b.settings.block_size.value, Called(*a.program),
                              *a.settings.block_size.value));
  finding.why =
      "A router hashes prompts with one size: Fathom refuses the workers that disagree (unless "
      "--block-size-conflict=mixed), Dynamo's routers silently drop their events, and since "
      "1.x "
      "withdraw the model.";
  finding.place = PlaceOf(b.settings.block_size, *b.program);
  finding.evidence = {Describe(a), Describe(b)};
  findings.push_back(WithRemedies(plan, std::move(finding),
                                  {SetBlockSize(plan, b, *a.settings.block_size.value),
                                   SetBlockSize(plan, a, *b.settings.block_size.value)},
                                  Safety::kDecide));
}

// Each engine is compared with the first of its model; one finding for each that differs.
void CheckConflict(const Plan& plan, std::span<const size_t> engines, bool routed,
                   std::set<size_t>& told, LintFindings& findings) {
  std::vector<const PlannedEngine*> firsts;
  for (const size_t i : engines) {
    const PlannedEngine& engine = plan.engines()[i];
    if (!engine.settings.block_size.value) continue;
    const auto first = std::ranges::find_if(
        firsts, [&](const PlannedEngine* other) { return OneModel(*other, engine, routed); });
    if (first == firsts.end()) {
      firsts.push_back(&engine);
    } else if ((*first)->settings.block_size.value != engine.settings.block_size.value &&
               told.insert(i).second) {
      AddConflict(plan, **first, engine, findings);
    }
  }
}

// Engines that one router could stand before: those of one graph and namespace, and in Dynamo or
// not.
using Fleet = std::tuple<std::string_view, std::string_view, bool>;

std::map<Fleet, std::vector<size_t>> FleetsOf(const Plan& plan) {
  std::map<Fleet, std::vector<size_t>> fleets;
  for (size_t i = 0; i < plan.engines().size(); ++i) {
    const Program& engine = *plan.engines()[i].program;
    if (engine.graph.empty()) continue;
    fleets[{engine.graph, engine.network_namespace, engine.dynamo}].push_back(i);
  }
  return fleets;
}

void CheckConflicts(const Plan& plan, LintFindings& findings) {
  std::set<size_t> told;
  std::set<std::string_view> mixed;
  for (const PlannedRouter& router : plan.routers()) {
    if (AllowsMixedSizes(*router.program)) {
      mixed.insert(router.program->graph);
    } else if (router.by_cache()) {
      CheckConflict(plan, router.engines, true, told, findings);
    }
  }
  for (const auto& [fleet, engines] : FleetsOf(plan)) {
    if (!mixed.contains(std::get<0>(fleet))) CheckConflict(plan, engines, false, told, findings);
  }
}

}  // namespace

void CheckBlockSizes(const Plan& plan, LintFindings& findings) {
  for (const PlannedRouter& router : plan.routers()) {
    if (!HasSizeOfItsOwn(router)) continue;
    if (!CheckMismatch(plan, router, findings)) CheckMissing(plan, router, findings);
  }
  CheckConflicts(plan, findings);
}

}  // namespace fathom
