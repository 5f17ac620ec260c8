#include "diagnose/manifest/identity.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace fathom {
namespace {

using enum ProgramRole;

struct Module {
  std::string_view name;
  Identity identity;
};
constexpr Module kModules[] = {
    {"vllm.entrypoints", {kEngine, EngineKind::kVllm, false}},
    {"sglang.launch_server", {kEngine, EngineKind::kSglang, false}},
    {"tensorrt_llm.commands.serve", {kEngine, EngineKind::kTrtllm, false}},
    {"dynamo.frontend", {kDynamoFrontend, EngineKind::kUnknown, true}},
    {"dynamo.router", {kDynamoRouter, EngineKind::kUnknown, true}},
    {"dynamo.vllm", {kEngine, EngineKind::kVllm, true}},
    {"dynamo.sglang", {kEngine, EngineKind::kSglang, true}},
    {"dynamo.trtllm", {kEngine, EngineKind::kTrtllm, true}},
    {"dynamo.mocker", {kEngine, EngineKind::kUnknown, true}},
};

struct CommandName {
  std::string_view name;
  std::string_view subcommand;  // empty: none is needed
  Identity identity;
};
constexpr CommandName kCommands[] = {
    {"vllm", "serve", {kEngine, EngineKind::kVllm, false}},
    {"sglang", "serve", {kEngine, EngineKind::kSglang, false}},
    {"trtllm-serve", "", {kEngine, EngineKind::kTrtllm, false}},
    {"fathom", "serve", {kFathom, EngineKind::kUnknown, false}},
};

struct ImageWord {
  std::string_view part;
  EngineKind engine;
};
constexpr ImageWord kImageWords[] = {
    {"tensorrt-llm", EngineKind::kTrtllm}, {"tensorrtllm", EngineKind::kTrtllm},
    {"tensorrt_llm", EngineKind::kTrtllm}, {"trtllm", EngineKind::kTrtllm},
    {"trt-llm", EngineKind::kTrtllm},      {"sglang", EngineKind::kSglang},
    {"vllm", EngineKind::kVllm},
};
// Companions whose images have an engine's name too.
constexpr std::string_view kCompanions[] = {"router",  "exporter", "operator", "gateway",
                                            "backend", "client",   "bench",    "controller"};

struct EngineFlag {
  std::string_view name;
  EngineKind engine;
};
constexpr EngineFlag kEngineFlags[] = {
    {"--gpu-memory-utilization", EngineKind::kVllm},
    {"--enable-prefix-caching", EngineKind::kVllm},
    {"--no-enable-prefix-caching", EngineKind::kVllm},
    {"--max-num-batched-tokens", EngineKind::kVllm},
    {"--max-num-seqs", EngineKind::kVllm},
    {"--mem-fraction-static", EngineKind::kSglang},
    {"--page-size", EngineKind::kSglang},
    {"--disable-radix-cache", EngineKind::kSglang},
    {"--extra-llm-api-options", EngineKind::kTrtllm},
    {"--kv-cache-free-gpu-memory-fraction", EngineKind::kTrtllm},
};

// Whose tags are the engine's own versions, whatever the registry.
constexpr std::string_view kOwnImages[] = {"vllm/vllm-openai", "vllm/vllm-openai-rocm",
                                           "lmsysorg/sglang", "tensorrt-llm/release"};

std::string_view FileNameOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

// Without registry, tag and digest.
std::string RepositoryOf(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const size_t colon = image.rfind(':');
  if (colon != image.npos && image.find('/', colon) == image.npos) image = image.substr(0, colon);
  std::string repository(image);
  std::ranges::transform(repository, repository.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return repository;
}

bool IsOwnImage(std::string_view image) {
  const std::string repository = "/" + RepositoryOf(image);
  return std::ranges::any_of(kOwnImages, [&](std::string_view own) {
    return repository.ends_with(own) && repository[repository.size() - own.size() - 1] == '/';
  });
}

const Module* ModuleNamed(std::string_view name) {
  for (const Module& module : kModules) {
    if (!name.starts_with(module.name)) continue;
    if (name.size() == module.name.size() || name[module.name.size()] == '.') return &module;
  }
  return nullptr;
}

// python -m MODULE, or an entry of kCommands, at `at`.
std::optional<Launch> LaunchAt(std::span<const ShellWord> words, size_t at) {
  const std::string_view name = FileNameOf(words[at].text);
  const std::string_view next = at + 1 < words.size() ? words[at + 1].text : std::string_view();
  if (words[at].text == "-m") {
    const Module* module = ModuleNamed(next);
    if (module == nullptr) return std::nullopt;
    const bool serve = at + 2 < words.size() && words[at + 2].text == "serve";
    return Launch{module->identity, at + (serve ? 3 : 2), {}, {}};
  }
  for (const CommandName& command : kCommands) {
    if (command.name != name) continue;
    if (!command.subcommand.empty() && command.subcommand != next) continue;
    return Launch{command.identity, at + (next == "serve" ? 2 : 1), {}, {}};
  }
  return std::nullopt;
}

std::optional<Launch> DirectLaunchOf(std::span<const ShellWord> words) {
  for (size_t at = 0; at < words.size(); ++at) {
    if (auto launch = LaunchAt(words, at)) return launch;
  }
  return std::nullopt;
}

// docker run [options] IMAGE [command] [arguments]
std::optional<Launch> ContainerLaunchOf(std::span<const ShellWord> words, size_t run) {
  std::vector<ShellWord> variables;
  for (size_t at = run + 1; at < words.size(); ++at) {
    const std::string& word = words[at].text;
    if ((word == "-e" || word == "--env") && at + 1 < words.size())
      variables.push_back(words[++at]);
    const Identity image = IdentityOfImage(word);
    if (word.starts_with('-') || image == Identity{}) continue;
    const auto inner = DirectLaunchOf(words.subspan(at + 1));
    if (!inner && image.role == kOther) return std::nullopt;
    Launch launch = inner.value_or(Launch{image, 0, {}, {}});
    launch.arguments += at + 1;
    launch.image = word;
    launch.variables = std::move(variables);
    return launch;
  }
  return std::nullopt;
}

bool IsContainerTool(std::string_view name) {
  return name == "docker" || name == "podman" || name == "nerdctl";
}

}  // namespace

Identity IdentityOfImage(std::string_view image) {
  const std::string repository = RepositoryOf(image);
  const std::string_view name = FileNameOf(repository);
  if (name == "fathom") return {kFathom, EngineKind::kUnknown, false};
  const bool companion =
      std::ranges::any_of(kCompanions, [&](std::string_view part) { return name.contains(part); });
  if (companion) return {};
  const bool dynamo = repository.contains("dynamo") || name.ends_with("-runtime");
  if (dynamo && name.contains("frontend")) return {kDynamoFrontend, EngineKind::kUnknown, true};
  for (const ImageWord& word : kImageWords) {
    // nvcr.io/nvidia/tensorrt-llm/release has its name one level up.
    if (!name.contains(word.part) && !(name == "release" && repository.contains(word.part)))
      continue;
    return {dynamo ? kOther : kEngine, word.engine, dynamo};
  }
  return {};
}

std::string VersionOf(std::string_view image) {
  if (!IsOwnImage(image) && !IdentityOfImage(image).dynamo) return {};
  image = image.substr(0, image.find('@'));
  const size_t colon = image.rfind(':');
  if (colon == image.npos) return {};
  std::string_view tag = image.substr(colon + 1);
  if (tag.starts_with('v')) tag.remove_prefix(1);
  tag = tag.substr(0, tag.find_first_not_of("0123456789."));
  while (tag.ends_with('.')) tag.remove_suffix(1);
  if (!tag.contains('.') || tag.starts_with('.')) return {};
  // A year: 25.10-py3.
  constexpr uint64_t kFirstYear = 20;
  const auto first = ParseDecimal(tag.substr(0, tag.find('.')));
  return first && *first < kFirstYear ? std::string(tag) : std::string();
}

std::string_view EngineVersionOf(const Program& program) {
  const bool dynamo = program.dynamo || IdentityOfImage(program.image).dynamo;
  return dynamo ? std::string_view() : program.version;
}

EngineKind EngineNamed(std::string_view name) {
  for (const ImageWord& word : kImageWords) {
    if (EqualsIgnoreCase(name, word.part)) return word.engine;
  }
  return EngineKind::kUnknown;
}

std::optional<Launch> LaunchOf(std::span<const ShellWord> words) {
  const auto tool = std::ranges::find_if(
      words, [](const ShellWord& word) { return IsContainerTool(FileNameOf(word.text)); });
  const auto run = std::ranges::find(tool, words.end(), "run", &ShellWord::text);
  if (run == words.end()) return DirectLaunchOf(words);
  return ContainerLaunchOf(words, static_cast<size_t>(run - words.begin()));
}

EngineKind EngineWithFlag(std::string_view flag) {
  std::string name(flag);
  std::ranges::replace(name, '_', '-');
  const auto found = std::ranges::find(kEngineFlags, name, &EngineFlag::name);
  return found == std::end(kEngineFlags) ? EngineKind::kUnknown : found->engine;
}

}  // namespace fathom
