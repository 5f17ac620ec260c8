#include "diagnose/lint/remedy.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace fathom {
namespace {

std::vector<TextEdit> ListOf(std::optional<TextEdit> edit) {
  std::vector<TextEdit> edits;
  if (edit) edits.push_back(std::move(*edit));
  return edits;
}

std::string ToPaste(EngineKind engine, uint32_t size) {
  if (engine == EngineKind::kTrtllm) {
    return fmt::format("kv_cache_config:\n  tokens_per_block: {}", size);
  }
  return fmt::format("{} {}", BlockSizeSetting(engine), size);
}

std::vector<TextEdit> BlockSizeEdits(const Plan& plan, const PlannedEngine& engine,
                                     const std::string& size) {
  const Program& program = *engine.program;
  const auto& now = engine.settings.block_size;
  // Another belief of the worker would leave the engine as it is.
  if (now.written && now.written == engine.settings.worker_block_size.written) return {};
  if (now.written) {
    // Ranks that share a context multiply what is written; then it is not ours to divide.
    const bool plain = now.value && now.written->value == std::to_string(*now.value);
    return plain ? Rewrite(plan, *now.written, size) : std::vector<TextEdit>();
  }
  const std::string_view setting = BlockSizeSetting(program.engine);
  if (program.engine != EngineKind::kTrtllm) return AddFlag(plan, program, setting, size);
  return AddKey(plan, program, setting, size, "must match the router");
}

// How the router's setting is called.
struct RouterSettingNames {
  std::string_view variable;
  std::string_view flag;
};

RouterSettingNames RouterSetting(ProgramRole role) {
  switch (role) {
    case ProgramRole::kDynamoFrontend:
      return {"DYN_KV_CACHE_BLOCK_SIZE", "--kv-cache-block-size"};
    case ProgramRole::kDynamoRouter:
      return {"DYN_ROUTER_BLOCK_SIZE", "--router-block-size"};
    default:
      return {"FATHOM_KV_CACHE_BLOCK_SIZE", "--kv-cache-block-size"};
  }
}

std::string_view Kind(const Program& program) {
  switch (program.role) {
    case ProgramRole::kDynamoFrontend:
      return "Dynamo's frontend";
    case ProgramRole::kDynamoRouter:
      return "Dynamo's router";
    case ProgramRole::kFathom:
      return "Fathom";
    default:
      return Brand(program.engine);
  }
}

std::string DiffOf(const Plan& plan, std::span<const TextEdit> edits) {
  std::string diff;
  std::set<std::string_view> done;
  for (const TextEdit& edit : edits) {
    const SourceFile* file = plan.File(edit.file);
    if (file == nullptr || file->text.size() > kMaxDiffed || !done.insert(edit.file).second) {
      continue;
    }
    diff += DiffToPassOn(*file, Apply(*file, edits));
  }
  return diff;
}

}  // namespace

LintFinding WithRemedies(const Plan& plan, Finding finding, std::vector<Remedy> remedies,
                         Safety safety) {
  LintFinding result;
  for (Remedy& remedy : remedies) remedy.fix.diff = DiffOf(plan, remedy.edits);
  // One is enough to mend it; both sides at once would undo each other.
  if (!remedies.empty() && safety == Safety::kSafe) result.edits = remedies.front().edits;
  for (Remedy& remedy : remedies) finding.fixes.push_back(std::move(remedy.fix));
  result.finding = std::move(finding);
  return result;
}

std::string Called(const Program& program) {
  if (program.name.empty() || program.name == ToText(program.place)) {
    return fmt::format("{} (line {})", Kind(program), program.place.line);
  }
  constexpr std::string_view kContainer = ", container ";
  const size_t container = program.name.find(kContainer);
  if (container == std::string::npos) return program.name;
  return fmt::format("container {} of {}", program.name.substr(container + kContainer.size()),
                     program.name.substr(0, container));
}

std::string_view Brand(EngineKind engine) {
  switch (engine) {
    case EngineKind::kVllm:
      return "vLLM";
    case EngineKind::kSglang:
      return "SGLang";
    case EngineKind::kTrtllm:
      return "TensorRT-LLM";
    case EngineKind::kUnknown:
      break;
  }
  return "the engine";
}

std::string_view BlockSizeSetting(EngineKind engine) {
  switch (engine) {
    case EngineKind::kSglang:
      return "--page-size";
    case EngineKind::kTrtllm:
      return "kv_cache_config.tokens_per_block";
    default:
      return "--block-size";
  }
}

std::optional<uint32_t> UsualBlockSize(EngineKind engine) {
  switch (engine) {
    case EngineKind::kVllm:
      return 16;
    case EngineKind::kSglang:
      return 1;
    case EngineKind::kTrtllm:
      return 32;
    case EngineKind::kUnknown:
      break;
  }
  return std::nullopt;
}

Remedy SetBlockSize(const Plan& plan, const PlannedEngine& engine, uint32_t size) {
  const Program& program = *engine.program;
  const std::string_view setting = BlockSizeSetting(program.engine);
  Remedy remedy;
  remedy.fix.what = fmt::format("Set {} of {} to {}.", setting, Called(program), size);
  remedy.fix.setting = ToPaste(program.engine, size);
  remedy.fix.cost =
      "The engine restarts and its cache is lost; some attention backends take only "
      "certain sizes.";
  remedy.fix.verify = "The engine's first KV events carry the new size: fathom listen shows it.";
  remedy.edits = BlockSizeEdits(plan, engine, std::to_string(size));
  return remedy;
}

Remedy SetBlockSize(const Plan& plan, const PlannedRouter& router, uint32_t size,
                    std::string_view comment) {
  const Program& program = *router.program;
  const RouterSettingNames names = RouterSetting(program.role);
  const auto& written = router.settings.block_size.written;
  const std::string value = std::to_string(size);
  Remedy remedy = written ? Remedy{{}, Rewrite(plan, *written, value)}
                          : SetEither(plan, program, names.variable, names.flag, value, comment);
  const std::string_view name = written ? written->name : remedy.fix.what;
  remedy.fix.what = fmt::format("Set {} of {} to {}.", name, Called(program), size);
  remedy.fix.setting = fmt::format("- name: {}\n  value: \"{}\"", names.variable, size);
  remedy.fix.cost = "The router restarts; engines and their caches are untouched.";
  remedy.fix.verify =
      "\"cached blocks\" and \"tree size\" in the router's \"Selected worker\" lines grow.";
  return remedy;
}

Remedy SetEither(const Plan& plan, const Program& program, std::string_view variable,
                 std::string_view flag, std::string_view value, std::string_view comment) {
  Remedy remedy;
  remedy.fix.what = variable;
  remedy.edits = AddVariable(plan, program, variable, value, comment);
  if (!remedy.edits.empty()) return remedy;
  remedy.edits = AddFlag(plan, program, flag, value);
  if (!remedy.edits.empty()) remedy.fix.what = flag;
  return remedy;
}

std::vector<TextEdit> Rewrite(const Plan& plan, const Written& written, std::string_view value) {
  const SourceFile* file = plan.File(written.place.file);
  return file == nullptr ? std::vector<TextEdit>() : ListOf(Replace(*file, written, value));
}

std::vector<TextEdit> AddFlag(const Plan& plan, const Program& program, std::string_view name,
                              std::string_view value) {
  const SourceFile* file = plan.File(program.flag_foothold.file);
  return file == nullptr ? std::vector<TextEdit>() : ListOf(SetFlag(*file, program, name, value));
}

std::vector<TextEdit> AddVariable(const Plan& plan, const Program& program, std::string_view name,
                                  std::string_view value, std::string_view comment) {
  const SourceFile* file = plan.File(program.environment_foothold.file);
  if (file == nullptr) return {};
  return ListOf(SetVariable(*file, program, name, value, comment));
}

std::vector<TextEdit> AddKey(const Plan& plan, const Program& program, std::string_view dotted,
                             std::string_view value, std::string_view comment) {
  const SourceFile* file = plan.File(program.key_foothold.file);
  return file == nullptr ? std::vector<TextEdit>()
                         : ListOf(SetKey(*file, program, dotted, value, comment));
}

}  // namespace fathom
