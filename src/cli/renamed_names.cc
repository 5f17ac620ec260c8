#include "cli/renamed_names.h"

#include <fmt/format.h>

#include "config/renamed_options.h"
#include "metrics/catalogue.h"
#include "router/gateway/openai_error.h"

namespace fathom {
namespace {

constexpr std::string_view kRenamedIntroduction = R"(# Renamed names

This page is written by `./dev docs` from the tables of renamed names in `src/`; change the tables, not the page. It
lists the former names that this version still answers to. [Compatibility](compatibility.md) has the rules.

* option: the former name works as a flag, as a `FATHOM_*` variable and as a YAML key, with a WARN at the start.
* metric: exposed under both names.
* error code: the answer has the former code in the header `x-fathom-former-code`.
* page: `fathom docs FORMER-NAME` prints the page that has the new name.
)";

void Append(std::vector<RenamedName>& names, std::string_view what, std::string_view dashes,
            std::span<const Renamed> rows) {
  for (const auto& [former, now, release] : rows) {
    names.push_back({what, fmt::format("{}{}", dashes, former), fmt::format("{}{}", dashes, now),
                     std::string(release)});
  }
}

}  // namespace

// The table. No page has been renamed yet; the next row makes it
//   static constexpr Renamed kRenamed[] = {{"former-name", "present-name", "0.2.0"}};
std::span<const Renamed> RenamedPages() { return {}; }

std::vector<RenamedName> AllRenamedNames() {
  std::vector<RenamedName> names;
  Append(names, "option", "--", RenamedOptions());
  for (const MetricArea& area : kMetricAreas) {
    for (const MetricFamily& family : area.families) {
      const auto& [former, release] = family.former;
      if (former.empty()) continue;
      names.push_back(
          {"metric", std::string(former), std::string(family.name), std::string(release)});
    }
  }
  Append(names, "error code", "", RenamedCodes());
  Append(names, "page", "", RenamedPages());
  return names;
}

std::string RenamedNamesPage(std::span<const RenamedName> names) {
  std::string page(kRenamedIntroduction);
  page += "\n| what | former name | name now | renamed in | former name removed in |\n";
  page += "|---|---|---|---|---|\n";
  for (const auto& [what, former, now, release] : names) {
    page += fmt::format("| {} | `{}` | `{}` | {} | {} |\n", what, former, now, release,
                        RemovedIn(release));
  }
  return page;
}

}  // namespace fathom
