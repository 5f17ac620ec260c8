// How does a table fit into a terminal?
//
// Columns are as wide as what they hold. Where that is too much, the widest ones give way and their
// cells are wrapped; where there are too many columns even for that, every row becomes a list.
#pragma once

#include <cstddef>
#include <string>

#include "diagnose/findings/report.h"
#include "diagnose/findings/text_style.h"

namespace fathom {

// The table without its title; no line is wider than the style's width (at least 40).
std::string TextTable(const Table& table, size_t indent, const TextStyle& style);

}  // namespace fathom
