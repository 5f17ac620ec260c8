#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/text.h"
#include "config/assignment.h"
#include "config/worker_list.h"

namespace fathom {
namespace {

constexpr std::string_view kWorkers = "workers";

// yaml-cpp throws; ParseConfigFile catches.
class ConfigFileReader {
 public:
  ConfigFileReader(Command command, std::string_view name, RenamedOptionTable renamed)
      : command_(command), name_(name), list_(name), renamed_(renamed) {}

  Result<ConfigFile> Read(const std::string& yaml) {
    const YAML::Node document = YAML::Load(yaml);
    if (document && !document.IsNull() && !document.IsMap()) {
      return Fail(Blame::kCaller, "{}:{}: must be a map of options, e.g. port: 8000", name_,
                  WorkerListReader::LineOf(document));
    }
    TRY_VOID(CheckOneDocument(name_, yaml));
    if (!document || document.IsNull()) return std::move(file_);
    SeenKeys seen;
    for (const auto& entry : document) TRY_VOID(ReadEntry(entry.first, entry.second, seen));
    return std::move(file_);
  }

 private:
  Result<> ReadEntry(const YAML::Node& key, const YAML::Node& value, SeenKeys& seen) {
    TRY(const Origin origin, list_.OriginOf(key));
    const std::string name = SpelledWith('-', key.Scalar());
    const bool workers = name == kWorkers && command_ == Command::kServe;
    const NamedOption named = FindOptionOrFormer(command_, name, renamed_);
    const Option* const option = named.option;
    if (!workers && option == nullptr) return std::unexpected(NoSuchKey(origin, name));
    TRY_VOID(RefuseRepeatedKey(origin, workers ? name : std::string(option->name),
                               WorkerListReader::LineOf(key), seen));
    if (value.IsNull())
      return std::unexpected(origin.Refuse("has no value; give one or remove it"));
    return workers ? ReadWorkers(origin, value) : ReadOption(origin, named, value);
  }

  Error NoSuchKey(const Origin& origin, const std::string& name) const {
    if (Nearest(name, {&kWorkers, 1})) {
      return origin.Refuse("no such key; did you mean workers?");
    }
    if (const auto other = CommandWith(name)) {
      return origin.Refuse(
          fmt::format("not an option of {}; it belongs to {}", NameOf(command_), NameOf(*other)));
    }
    const auto nearest = NearestOption(command_, name);
    if (nearest) return origin.Refuse(fmt::format("no such key; did you mean {}?", *nearest));
    return origin.Refuse(fmt::format("no such key; fathom {} --help lists them", NameOf(command_)));
  }

  Result<> ReadOption(const Origin& origin, const NamedOption& named, const YAML::Node& value) {
    const Option& option = *named.option;
    if (option.name == "config") {
      return std::unexpected(origin.Refuse("a file cannot name another; use --config"));
    }
    TRY(std::string text, TextOf(origin, option, value));
    file_.assignments.push_back({&option, std::move(text), origin, {}, named.renamed});
    return {};
  }

  static Result<std::string> TextOf(const Origin& origin, const Option& option,
                                    const YAML::Node& value) {
    if (value.IsScalar()) return value.Scalar();
    if (!option.list()) return std::unexpected(origin.Refuse("must be a single value"));
    if (!value.IsSequence()) return std::unexpected(origin.Refuse("must be a list of words"));
    std::string text;
    for (const auto& item : value) {
      if (!item.IsScalar()) return std::unexpected(origin.Refuse("must be a list of words"));
      text.append(item.Scalar()).append(" ");
    }
    return text;
  }

  Result<> ReadWorkers(const Origin& origin, const YAML::Node& value) {
    if (!value.IsSequence()) {
      return std::unexpected(origin.Refuse("must be a list of URLs or maps, each after a dash"));
    }
    TRY(file_.workers, list_.Read(value));
    return {};
  }

  const Command command_;
  const std::string_view name_;
  const WorkerListReader list_;
  const RenamedOptionTable renamed_;
  ConfigFile file_;
};

}  // namespace

Result<ConfigFile> ParseConfigFile(Command command, std::string_view name, const std::string& yaml,
                                   RenamedOptionTable renamed) {
  try {
    return ConfigFileReader(command, name, renamed).Read(yaml);
  } catch (const YAML::Exception& e) {
    return std::unexpected(BadYaml(name, e));
  }
}

}  // namespace fathom
