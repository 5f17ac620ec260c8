#include "diagnose/manifest/fleet_join.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace fathom {
namespace {

// What one file has, or one folder of such files.
struct Half {
  size_t routers = 0;
  std::set<EngineKind> engines;

  bool whole() const { return routers > 0 && !engines.empty(); }
  bool plain() const { return routers == 1 && engines.size() == 1; }
};

void Count(const Program& program, Half& half) {
  if (program.role == ProgramRole::kOther) return;
  if (program.role == ProgramRole::kEngine) {
    half.engines.insert(program.engine);
  } else {
    half.routers = 1;
  }
}

std::string FolderOf(std::string_view file) {
  const size_t slash = file.rfind('/');
  return std::string(slash == file.npos ? "" : file.substr(0, slash + 1));
}

std::string GroupOf(std::string_view file, JoinScope scope) {
  return scope == JoinScope::kAll ? "the files together"
                                  : fmt::format("the files of {}", FolderOf(file));
}

}  // namespace

JoinedFiles JoinHalves(const Deployment& deployment, JoinScope scope) {
  // A DynamoGraphDeployment is a graph by itself, and so is a block of a Markdown page.
  std::map<std::string, Half> files;
  for (const Program& program : deployment.programs) {
    if (program.graph == program.place.file) Count(program, files[program.graph]);
  }
  std::map<std::string, Half> groups;
  for (const auto& [file, half] : files) {
    if (half.whole()) continue;
    Half& group = groups[GroupOf(file, scope)];
    group.routers += half.routers;
    group.engines.insert(half.engines.begin(), half.engines.end());
  }
  JoinedFiles joined;
  for (const auto& [file, half] : files) {
    const std::string name = GroupOf(file, scope);
    const Half& group = groups[name];
    if (half.whole()) continue;
    if (scope == JoinScope::kAll || group.plain()) joined.emplace(file, name);
  }
  return joined;
}

void Join(const JoinedFiles& files, Deployment& deployment) {
  for (Program& program : deployment.programs) {
    const auto joined = files.find(program.graph);
    if (joined != files.end()) program.graph = joined->second;
  }
}

}  // namespace fathom
