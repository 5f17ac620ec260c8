// What does a line of a router say: which worker was chosen, which events were refused, which block
// sizes differ? Dynamo's lines, and the one that Fathom shares with it.
#pragma once

#include "diagnose/logs/log_facts.h"
#include "diagnose/logs/log_line.h"

namespace fathom {

// `said` is the message from its phrase on. False: on a second look it does not say that.
bool TakeRouterLine(LogKind kind, std::string_view said, const LogLine& line, LogFacts& facts);

// Counts one clash, if there is room for it.
void Count(SizeClash clash, LogFacts& facts);

}  // namespace fathom
