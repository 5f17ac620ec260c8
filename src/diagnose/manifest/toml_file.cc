#include "diagnose/manifest/toml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "diagnose/manifest/engine_file.h"
#include "diagnose/manifest/toml_text.h"

namespace fathom {
namespace {

// The settings of one table, or of the whole file, by names of their own.
using Settings = std::vector<Written>;

std::string_view HeadOf(std::string_view dotted) { return dotted.substr(0, dotted.find('.')); }

// Any program may have a table of that name: some of its settings must be Dynamo's, too.
bool IsOfDynamo(const Settings& settings) {
  return std::ranges::any_of(settings, [](const Written& setting) {
    const std::string_view name = setting.name;
    return name.contains(".DYN_") || name.starts_with("DYN_") || name == "router-mode" ||
           name == "router_mode" || name == "kv-cache-block-size" || name == "kv_cache_block_size";
  });
}

// By the table's name, or by what is in it.
Identity IdentityOf(std::string_view table, const Settings& settings) {
  if (table == "frontend" && IsOfDynamo(settings)) {
    return {ProgramRole::kDynamoFrontend, EngineKind::kUnknown, true};
  }
  if (table == "fathom") return {ProgramRole::kFathom, EngineKind::kUnknown, false};
  const EngineKind engine = EngineNamed(table);
  if (engine != EngineKind::kUnknown) return {ProgramRole::kEngine, engine, false};
  std::vector<std::string_view> keys;
  for (const Written& setting : settings) {
    const std::string_view key = HeadOf(setting.name);
    if (!IsWorkerKey(key) || IsWorkerUrl(setting.value)) keys.push_back(key);
  }
  return IdentityOfKeys(keys);
}

// env.NAME is a variable.
void Sort(Settings settings, Program& program) {
  for (Written& setting : settings) {
    const std::string_view head = HeadOf(setting.name);
    const bool variable = head == "env" || head == "envs" || head == "environment";
    if (variable && head.size() < setting.name.size()) setting.name.erase(0, head.size() + 1);
    auto& list = variable ? program.variables : program.keys;
    if (list.size() < EngineFile::kMaxKeys) list.push_back(std::move(setting));
  }
}

void Take(const std::string& file, std::string_view table, const std::string& graph,
          Settings settings, Collection& out) {
  const Identity identity = IdentityOf(table, settings);
  if (identity.role == ProgramRole::kOther) return;
  Draft draft;
  Program& program = draft.program;
  program.role = identity.role;
  program.engine = identity.engine;
  program.dynamo = identity.dynamo;
  program.name = table.empty() ? file : fmt::format("{} [{}]", file, table);
  program.graph = graph;
  program.place = settings.front().place;
  program.key_foothold.form = Foothold::Form::kTomlKeys;
  program.key_foothold.file = file;
  Sort(std::move(settings), program);
  out.Add({std::move(draft)});
}

}  // namespace

Result<> CollectToml(const Passage& passage, const std::string& graph, Collection& out) {
  TRY(Settings all, ReadToml(passage));
  const std::string& file = passage.file().name;
  if (IdentityOf("", all).role != ProgramRole::kOther) {
    Take(file, "", graph, std::move(all), out);
    return {};
  }
  std::map<std::string, Settings> tables;
  for (Written& setting : all) {
    const std::string table(HeadOf(setting.name));
    if (table.size() == setting.name.size()) continue;
    setting.name.erase(0, table.size() + 1);
    tables[table].push_back(std::move(setting));
  }
  for (auto& [table, settings] : tables) Take(file, table, graph, std::move(settings), out);
  return {};
}

}  // namespace fathom
