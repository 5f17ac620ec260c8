// What do all views of a report say in the same words?
//
// Headings, counts, gains, and the tables at its end. Texts are as they came: each view makes them
// safe for where they go.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/findings/report.h"

namespace fathom {

// "3. Memory pressure"; what is left to do is part 4.
std::string Heading(Part part);
constexpr std::string_view kFixesHeading = "4. Fixes";

// "ERROR"
std::string_view Badge(Severity severity);

// "1 error, 2 warnings"; "no findings".
std::string CountOf(const std::vector<Finding>& findings);

// "up to 62 % of prefill"; empty where nothing was reckoned.
std::string GainOf(const Finding& finding);

// "frontend (agg_router.yaml:12)", or the one that there is.
std::string SubjectOf(const Finding& finding);

// Every fix of every finding by rank: "1", then "1b" for another way to mend the same.
Table FixTable(const Report& report);
Table LookedAtTable(const Report& report);
Table SentTable(const Report& report);

// Whether a column holds numbers, which stand at its right.
bool IsNumeric(const Table& table, size_t column);

// The cell, or an empty one where the row is short.
const Cell& CellAt(const std::vector<Cell>& row, size_t column);

}  // namespace fathom
