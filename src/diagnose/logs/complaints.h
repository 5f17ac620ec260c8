// Is what was wrong with a worker still so at the end of the log?
#pragma once

#include "diagnose/logs/log_facts.h"
#include "diagnose/logs/log_line.h"

namespace fathom {

// Writes down a complaint, or strikes out those that this line says, or shows, to be over.
void Complain(LogKind kind, const LogLine& line, LogFacts& facts);

}  // namespace fathom
