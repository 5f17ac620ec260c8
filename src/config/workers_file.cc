#include "config/workers_file.h"

#include <yaml-cpp/yaml.h>

#include "config/worker_list.h"

namespace fathom {
namespace {

// Every key but workers is refused: it may be another kind of file.
Result<YAML::Node> ListOf(std::string_view name, const YAML::Node& document) {
  constexpr std::string_view kForm = "the key workers with a list, or the list itself";
  if (!document || document.IsNull()) {
    return Fail(Blame::kCaller, "{}: is empty; write workers: [] if there shall be none", name);
  }
  if (document.IsSequence() && document.size() == 0) {
    return Fail(Blame::kCaller, "{}:{}: is an empty list; write workers: [] if there shall be none",
                name, WorkerListReader::LineOf(document));
  }
  if (document.IsSequence()) return document;
  if (!document.IsMap()) {
    return Fail(Blame::kCaller, "{}:{}: must have {}", name, WorkerListReader::LineOf(document),
                kForm);
  }
  const WorkerListReader list(name);
  YAML::Node found;
  SeenKeys seen;
  for (const auto& entry : document) {
    TRY(const Origin origin, list.OriginOf(entry.first));
    if (entry.first.Scalar() != "workers") {
      return std::unexpected(origin.Refuse("no such key; a file of workers has the key workers"));
    }
    TRY_VOID(RefuseRepeatedKey(origin, "workers", WorkerListReader::LineOf(entry.first), seen));
    if (!entry.second.IsSequence()) {
      return std::unexpected(origin.Refuse(
          "must be a list of URLs or maps, each after a dash; write workers: [] for none"));
    }
    found.reset(entry.second);
  }
  if (seen.empty()) return Fail(Blame::kCaller, "{}: must have {}", name, kForm);
  return found;
}

}  // namespace

Result<std::vector<WorkerEntry>> ParseWorkersFile(std::string_view name, const std::string& yaml) {
  try {
    const YAML::Node document = YAML::Load(yaml);
    TRY_VOID(CheckOneDocument(name, yaml));
    TRY(const YAML::Node list, ListOf(name, document));
    return WorkerListReader(name).Read(list);
  } catch (const YAML::Exception& e) {
    return std::unexpected(BadYaml(name, e));
  }
}

}  // namespace fathom
