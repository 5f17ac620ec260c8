#include "diagnose/manifest/collection.h"

#include <algorithm>
#include <map>
#include <utility>

#include "codec/json.h"
#include "diagnose/manifest/setting_lookup.h"

namespace fathom {
namespace {

constexpr std::string_view kFileFlags[] = {"--extra_llm_api_options", "--extra-engine-args",
                                           "--config", "--config_file"};
constexpr std::string_view kInlineFlag = "--override-engine-args";
constexpr std::string_view kDottedFlags = "--trtllm.";

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Whether `path` is `mount`, or `mount`/`key`.
bool Covers(std::string_view mount, std::string_view key, std::string_view path) {
  while (mount.ends_with('/')) mount.remove_suffix(1);
  if (!path.starts_with(mount)) return false;
  path.remove_prefix(mount.size());
  return path.empty() || (path.starts_with('/') && path.substr(1) == key);
}

Duty DutyOf(const Program& program) {
  if (program.Flag("--is-prefill-worker") != nullptr) return Duty::kPrefill;
  if (program.Flag("--is-decode-worker") != nullptr) return Duty::kDecode;
  const Written* mode = FirstWritten(program, {"--disaggregation-mode", "disaggregation-mode"});
  if (mode == nullptr) return program.duty;
  if (mode->value == "prefill") return Duty::kPrefill;
  return mode->value == "decode" ? Duty::kDecode : Duty::kBoth;
}

class Assembler {
 public:
  explicit Assembler(Collection collection) : all_(std::move(collection)) {}

  Deployment Run() {
    for (Draft& draft : all_.drafts) {
      if (MakerIsHere(draft)) continue;
      TakeVariables(draft);
      TakeFiles(draft);
      draft.program.duty = DutyOf(draft.program);
      Scale(draft);
      deployment_.programs.push_back(std::move(draft.program));
    }
    for (size_t i = 0; i < all_.loose_files.size(); ++i) {
      const bool known = all_.loose_files[i].identity.role != ProgramRole::kOther;
      if (known && !used_[i]) deployment_.programs.push_back(ProgramOf(all_.loose_files[i]));
    }
    deployment_.services = std::move(all_.services);
    return std::move(deployment_);
  }

 private:
  // Dynamo's operator makes components of a graph first, and Deployments of these.
  bool MakerIsHere(const Draft& draft) const {
    if (draft.maker.empty()) return false;
    const std::string& space = draft.program.network_namespace;
    // A copy of what the controller was told, maybe an old one. Where only copies were read, they
    // are what there is.
    return all_.kinds.contains({draft.maker, space}) ||
           (draft.maker == "ReplicaSet" && all_.kinds.contains({"Deployment", space})) ||
           (draft.maker == "DynamoComponentDeployment" &&
            all_.kinds.contains({"DynamoGraphDeployment", space}));
  }

  void Scale(Draft& draft) const {
    Program& program = draft.program;
    program.most_replicas = std::max(program.most_replicas, program.replicas);
    for (const Autoscaler& scaler : all_.autoscalers) {
      const bool here = scaler.network_namespace == program.network_namespace ||
                        scaler.network_namespace.empty() || program.network_namespace.empty();
      if (!here || scaler.kind != draft.owner_kind || scaler.name != draft.owner_name) continue;
      program.replicas = std::max(program.replicas, scaler.least);
      program.most_replicas = std::max({program.most_replicas, program.replicas, scaler.most});
    }
  }

  // The one of its own namespace, or of none that is said.
  const ConfigMap* MapNamed(std::string_view name, std::string_view network_namespace) const {
    for (const ConfigMap& map : all_.config_maps) {
      if (map.name != name) continue;
      if (map.network_namespace == network_namespace || map.network_namespace.empty() ||
          network_namespace.empty()) {
        return &map;
      }
    }
    return nullptr;
  }

  void TakeVariables(Draft& draft) {
    std::vector<Written> variables;
    for (const std::string& name : draft.environment_maps) {
      const ConfigMap* map = MapNamed(name, draft.program.network_namespace);
      if (map == nullptr || map->data == nullptr) continue;
      for (Written& variable : VariablesOf(*map->data)) {
        if (variables.size() < kMaxVariables) variables.push_back(std::move(variable));
      }
    }
    // What the container says itself comes last, and wins.
    std::ranges::move(draft.program.variables, std::back_inserter(variables));
    draft.program.variables = std::move(variables);
  }

  void TakeFiles(Draft& draft) {
    Program& program = draft.program;
    for (const std::string_view name : kFileFlags) {
      if (const Written* flag = program.Flag(name)) TakeFile(draft, flag->value);
    }
    if (const Written* flag = program.Flag(kInlineFlag)) TakeInline(program, *flag);
    for (const Written& flag : program.flags) {
      if (!flag.name.starts_with(kDottedFlags)) continue;
      program.keys.push_back(flag);
      program.keys.back().name = flag.name.substr(kDottedFlags.size());
    }
  }

  void TakeFile(Draft& draft, std::string_view path) {
    const EngineFile* file = FileAt(draft, path);
    draft.program.unseen_file |= file == nullptr;
    if (file == nullptr) return;
    std::ranges::copy(file->keys, std::back_inserter(draft.program.keys));
    draft.program.key_foothold = file->foothold;
  }

  const EngineFile* FileAt(const Draft& draft, std::string_view path) {
    for (const Mount& mount : draft.mounts) {
      const ConfigMap* map = MapNamed(mount.config_map, draft.program.network_namespace);
      const YamlNode* text = map == nullptr ? nullptr : MountedText(*map, mount, path);
      if (text != nullptr) return Parsed(*text);
    }
    for (const HereDocument& document : draft.documents) {
      if (document.path == path) return Parsed(document.text.text().data(), document.text);
    }
    if (const EngineFile* loose = LooseFileAt(path)) return loose;
    return FileOfAnyMap(path);
  }

  static const YamlNode* MountedText(const ConfigMap& map, const Mount& mount,
                                     std::string_view path) {
    const std::string key = mount.key.empty() ? std::string(BaseName(path)) : mount.key;
    return map.data != nullptr && Covers(mount.path, key, path) ? map.data->Find(key) : nullptr;
  }

  const EngineFile* LooseFileAt(std::string_view path) {
    for (size_t i = 0; i < all_.loose_files.size(); ++i) {
      if (BaseName(all_.loose_files[i].name) != BaseName(path)) continue;
      used_[i] = true;
      return &all_.loose_files[i].file;
    }
    return nullptr;
  }

  // A volume that these files do not show, where only one ConfigMap has a file of that name.
  const EngineFile* FileOfAnyMap(std::string_view path) {
    const YamlNode* only = nullptr;
    for (const ConfigMap& map : all_.config_maps) {
      const YamlNode* text = map.data == nullptr ? nullptr : map.data->Find(BaseName(path));
      if (text != nullptr && only != nullptr) return nullptr;
      if (text != nullptr) only = text;
    }
    return only == nullptr ? nullptr : Parsed(*only);
  }

  const EngineFile* Parsed(const YamlNode& text) {
    const auto passage = PassageOf(text);
    return passage ? Parsed(&text, *passage) : nullptr;
  }

  // Each text once, however many programs name it; `whose` tells one from another.
  const EngineFile* Parsed(const void* whose, const Passage& passage) {
    const auto [known, fresh] = parsed_.try_emplace(whose, nullptr);
    if (!fresh) return known->second;
    const auto tree = YamlTree::Parse(passage);
    if (!tree || tree->documents().empty() || !tree->documents()[0]->map()) return nullptr;
    files_.push_back(ReadEngineFile(*tree->documents()[0]));
    return known->second = &files_.back();
  }

  static void TakeInline(Program& program, const Written& flag) {
    const auto json = Json::Parse(flag.value);
    if (json) Flatten(*json, "", flag, program.keys);
  }

  static void Flatten(const Json& json, const std::string& name, const Written& flag,
                      std::vector<Written>& keys) {
    if (keys.size() >= EngineFile::kMaxKeys) return;
    if (json.object() == nullptr) {
      std::string value = json.string() == nullptr ? std::string() : *json.string();
      if (json.string() == nullptr) json.WriteTo(value);
      keys.push_back({name, std::move(value), flag.place, std::nullopt});
      return;
    }
    for (const auto& [key, value] : *json.object()) {
      Flatten(value, name.empty() ? key : name + "." + key, flag, keys);
    }
  }

  static Program ProgramOf(const LooseFile& loose) {
    Program program;
    program.role = loose.identity.role;
    program.engine = loose.identity.engine;
    program.name = loose.name;
    program.graph = loose.graph;
    program.place = loose.place;
    program.keys = loose.file.keys;
    program.key_foothold = loose.file.foothold;
    return program;
  }

  Collection all_;
  Deployment deployment_;
  std::map<size_t, bool> used_;  // loose files, by index
  std::map<const void*, const EngineFile*> parsed_;
  std::deque<EngineFile> files_;
};

}  // namespace

void Collection::Add(std::vector<Draft> more) {
  for (Draft& draft : more) {
    if (drafts.size() < kMaxPrograms) drafts.push_back(std::move(draft));
  }
}

Deployment Assemble(Collection collection) { return Assembler(std::move(collection)).Run(); }

}  // namespace fathom
