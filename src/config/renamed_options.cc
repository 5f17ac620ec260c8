#include "config/renamed_options.h"

#include <fmt/format.h>

namespace fathom {

// The table. No option has been renamed yet; the next row makes it
//   static constexpr Renamed kRenamed[] = {{"former-name", "present-name", "0.2.0"}};
// and has its line in CHANGELOG.md, under "Renamed" of that release.
RenamedOptionTable RenamedOptions() { return {}; }

NamedOption FindOptionOrFormer(Command command, std::string_view name, RenamedOptionTable renamed) {
  if (const Option* const option = FindOption(command, name)) return {option, nullptr};
  for (const Renamed& row : renamed) {
    if (row.former == name) return {FindOption(command, row.now), &row};
  }
  return {};
}

void WarnOfFormerNames(const Settings& settings, Log& log) {
  for (const FormerNameUse& use : settings.former_names()) {
    log.Warn("An option has its former name; the next release does not know it",
             {{"former", use.former},
              {"name", use.now},
              {"origin", use.origin},
              {"removed_in", use.removed_in},
              {"fix", fmt::format("write {} instead of {}", use.now, use.former)}});
  }
}

std::string FormerNameNote(const FormerNameUse& use) {
  return fmt::format("{} is a former name ({}); write {}; Fathom {} removes it", use.former,
                     use.origin, use.now, use.removed_in);
}

}  // namespace fathom
