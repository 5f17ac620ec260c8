#include "config/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/text.h"
#include "config/assignment.h"

namespace fathom {
namespace {

// Applies the sources, highest precedence first: a value that is set is not replaced.
class Precedence {
 public:
  explicit Precedence(Settings& settings) : settings_(settings) {}

  // An overridden value is checked too, so that an error in it is found now.
  Result<> Apply(const std::vector<Assignment>& source) {
    for (const Assignment& assignment : source) TRY_VOID(ApplyOne(assignment));
    return {};
  }

  // These were written for another program: an overridden one is not checked.
  Result<> ApplyWhereNeeded(const std::vector<Assignment>& source) {
    for (const Assignment& assignment : source) {
      if (!taken_.contains(assignment.option)) TRY_VOID(ApplyOne(assignment));
    }
    return {};
  }

 private:
  Result<> ApplyOne(const Assignment& assignment) {
    TRY(OptionValue value, ValueOf(assignment));
    std::string origin = assignment.origin.ToString();
    if (assignment.renamed != nullptr) {
      settings_.AddFormerName(UseOf(*assignment.renamed, assignment.origin));
      origin += " (former name)";
    }
    if (taken_.insert(assignment.option).second) {
      settings_.Set(*assignment.option, std::move(value), std::move(origin));
    }
    return {};
  }

  static FormerNameUse UseOf(const Renamed& renamed, const Origin& origin) {
    const bool negated = origin.name() == fmt::format("--no-{}", renamed.former);
    return {.former = origin.name(),
            .now = origin.SpelledHere(fmt::format("{}{}", negated ? "no-" : "", renamed.now)),
            .origin = origin.ToString(),
            .removed_in = RemovedIn(renamed.release)};
  }

  Settings& settings_;
  std::set<const Option*> taken_;
};

// The file must be known before its turn: only sources with a higher precedence can name it.
const Assignment* ConfigOption(Command command, const std::vector<Assignment>& flags,
                               const std::vector<Assignment>& variables) {
  const Option* option = FindOption(command, "config");
  for (const auto* source : {&flags, &variables}) {
    const auto found = std::ranges::find(*source, option, &Assignment::option);
    if (option != nullptr && found != source->end()) return &*found;
  }
  return nullptr;
}

Result<ConfigFile> ReadConfigFile(Command command, const Assignment* named,
                                  const FileReader& read_file, RenamedOptionTable renamed) {
  if (named == nullptr || named->text.empty()) return ConfigFile();
  const auto yaml = read_file(named->text);
  if (!yaml) {
    return std::unexpected(
        named->origin.Refuse(*named->option, named->text, "cannot be read: " + yaml.error().what));
  }
  return ParseConfigFile(command, named->text, *yaml, renamed);
}

Result<> AddWorkers(Settings& settings, std::vector<WorkerEntry> written) {
  if (settings.command() != Command::kServe) return {};
  for (const std::string& url : settings.List("worker-urls")) {
    WorkerEntry entry;
    entry.url = url;
    entry.origin = settings.OriginOf("worker-urls");
    TRY_VOID(settings.AddWorker(std::move(entry)));
  }
  for (WorkerEntry& entry : written) TRY_VOID(settings.AddWorker(std::move(entry)));
  return {};
}

}  // namespace

Result<OptionValue> ValueOf(const Assignment& assignment) {
  const auto& [option, text, origin, unit, renamed] = assignment;
  if (!unit.empty() && !ParseDecimal(text)) {
    return std::unexpected(
        origin.Refuse(*option, text, fmt::format("must be a plain number, which counts {}", unit)));
  }
  auto value = ParseValue(*option, fmt::format("{}{}", text, unit));
  if (value) return value;
  return std::unexpected(origin.Refuse(*option, text, value.error().what));
}

Environment EnvironmentOf(const char* const* variables) {
  Environment environment;
  for (; *variables != nullptr; ++variables) {
    const std::string_view variable = *variables;
    const size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return environment;
}

bool AsksForHelp(std::span<const std::string_view> args) {
  return std::ranges::any_of(args, [](auto arg) { return arg == "--help" || arg == "-h"; });
}

Result<Settings> LoadSettings(Command command, std::span<const std::string_view> args,
                              const Environment& environment, const FileReader& read_file,
                              RenamedOptionTable renamed) {
  TRY(const auto flags, ReadFlags(command, args, renamed));
  TRY(const auto variables, ReadVariables(command, environment, renamed));
  TRY(auto file,
      ReadConfigFile(command, ConfigOption(command, flags, variables), read_file, renamed));

  Settings settings(command);
  Precedence precedence(settings);
  TRY_VOID(precedence.Apply(flags));
  TRY_VOID(precedence.Apply(variables));
  TRY_VOID(precedence.ApplyWhereNeeded(ReadDynamoVariables(command, environment)));
  TRY_VOID(precedence.Apply(file.assignments));
  TRY_VOID(AddWorkers(settings, std::move(file.workers)));
  TRY_VOID(Validate(settings));
  return settings;
}

}  // namespace fathom
