// Which KV events did a router refuse, by its log, and what does that mean?
#pragma once

#include <cstdint>
#include <string>

#include "diagnose/doctor/case_file.h"
#include "diagnose/doctor/finding_book.h"

namespace fathom {

struct RefusedEvents {
  uint64_t stores = 0;
  uint64_t removals = 0;
  uint64_t all = 0;              // lines
  uint64_t peak_per_minute = 0;  // no less than it was
};
RefusedEvents CountRefused(const LogFacts& facts);

void DiagnoseRefusedEvents(const ReadLog& log, FindingBook& book);

// A line of the log as evidence: where it stands first, how often and how fast it came.
std::string LoggedText(const ReadLog& log, LogKind kind);

}  // namespace fathom
