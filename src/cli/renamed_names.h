// Which names does this Fathom answer to that it no longer uses?
//
// All tables of base/renamed.h in one list, and the page docs/renamed.md made of it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/renamed.h"

namespace fathom {

// Pages of the documentation. Findings, trust causes and rules of lint have a page of their name:
// one that is renamed has a row here.
std::span<const Renamed> RenamedPages();

struct RenamedName {
  std::string_view what;  // "option", "metric", "error code", "page"
  std::string former;     // as typed: options have their dashes
  std::string now;
  std::string release;
};

std::vector<RenamedName> AllRenamedNames();

// The whole of docs/renamed.md.
std::string RenamedNamesPage(std::span<const RenamedName> names);

}  // namespace fathom
