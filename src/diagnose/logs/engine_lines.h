// What does a line of an engine say of its cache: how large, how full, how useful?
#pragma once

#include <string_view>

#include "diagnose/logs/log_facts.h"

namespace fathom {

// `said` is the message from its phrase on. False: on a second look it does not say that.
bool TakeEngineLine(LogKind kind, std::string_view said, EngineFacts& facts);

}  // namespace fathom
