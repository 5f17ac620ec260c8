#include <fmt/format.h>

#include <algorithm>

#include "config/assignment.h"

namespace fathom {
namespace {

constexpr std::string_view kPrefix = "FATHOM_";

NamedOption FindVariable(Command command, std::string_view variable, RenamedOptionTable renamed) {
  const auto found = std::ranges::find_if(Options(), [&](const Option& option) {
    return option.BelongsTo(command) && option.EnvironmentName() == variable;
  });
  if (found != Options().end()) return {&*found};
  for (const Renamed& row : renamed) {
    if (EnvironmentNameOf(row.former) == variable) return {FindOption(command, row.now), &row};
  }
  return {};
}

bool BelongsToAnyCommand(std::string_view variable, RenamedOptionTable renamed) {
  return std::ranges::any_of(kCommands, [&](Command command) {
    return FindVariable(command, variable, renamed).option != nullptr;
  });
}

// FATHOM_MAX_IN_FLIGHT -> max-in-flight. Names are compared without the prefix, which would make
// all of them similar.
std::string OptionNameOf(std::string_view variable) {
  std::string name(variable.substr(kPrefix.size()));
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name;
}

Error NoSuchVariable(Command command, std::string_view variable) {
  const Origin origin = Origin::Variable(variable);
  const auto nearest = NearestOption(command, OptionNameOf(variable));
  if (!nearest) {
    return origin.Refuse(
        fmt::format("no such variable; fathom {} --help lists them", NameOf(command)));
  }
  return origin.Refuse(fmt::format("no such variable; did you mean {}?",
                                   FindOption(command, *nearest)->EnvironmentName()));
}

// Compose files and manifests write NAME= for "not set". An empty key is refused instead: it would
// silently disable authentication.
bool IsUnset(const Option& option, std::string_view value) {
  return value.empty() && !option.secret();
}

// Kubernetes sets variables for the Services of the namespace in every pod, named after the
// Service: a Service "fathom" gives FATHOM_PORT=tcp://10.0.0.7:8000, FATHOM_SERVICE_HOST, and
// FATHOM_PORT_8000_TCP_ADDR. The operator did not write these.
bool IsServiceLink(std::string_view variable, std::string_view value) {
  constexpr std::string_view kNumbered = "_PORT_";  // and the number follows
  if (variable.ends_with("_SERVICE_HOST") || variable.contains("_SERVICE_PORT")) return true;
  if (variable.ends_with("_PORT") && value.contains("://")) return true;
  const size_t at = variable.find(kNumbered);
  if (at == std::string_view::npos) return false;
  const std::string_view number = variable.substr(at + kNumbered.size());
  return !number.empty() && number[0] >= '0' && number[0] <= '9';
}

}  // namespace

Result<std::vector<Assignment>> ReadVariables(Command command, const Environment& environment,
                                              RenamedOptionTable renamed) {
  std::vector<Assignment> found;
  for (const auto& [variable, value] : environment) {
    if (!variable.starts_with(kPrefix) || IsServiceLink(variable, value)) continue;
    if (const NamedOption named = FindVariable(command, variable, renamed); named.option) {
      if (IsUnset(*named.option, value)) continue;
      const Origin origin = Origin::Variable(variable);
      const auto same = std::ranges::find(found, named.option, &Assignment::option);
      if (same != found.end()) {
        return std::unexpected(named.renamed != nullptr ? BothNames(origin, same->origin.name())
                                                        : BothNames(same->origin, variable));
      }
      found.push_back({named.option, value, origin, {}, named.renamed});
    } else if (!BelongsToAnyCommand(variable, renamed)) {
      return std::unexpected(NoSuchVariable(command, variable));
    }
  }
  return found;
}

std::vector<Assignment> ReadDynamoVariables(Command command, const Environment& environment) {
  std::vector<Assignment> found;
  for (const Option& option : Options()) {
    if (!option.BelongsTo(command)) continue;
    for (const auto& [variable, unit] : option.dynamo) {
      const auto value = environment.find(variable);
      if (variable.empty() || value == environment.end() || value->second.empty()) continue;
      found.push_back({&option, value->second, Origin::Variable(variable), unit});
      break;
    }
  }
  return found;
}

}  // namespace fathom
