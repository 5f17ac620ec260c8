// What does a TOML file deploy?
//
// Tables that look like an engine's or a router's settings: at the top, or one table each.
#pragma once

#include <string>

#include "base/result.h"
#include "diagnose/manifest/collection.h"
#include "diagnose/manifest/passage.h"

namespace fathom {

// Errors  kCaller, "x.toml:12:3: bad TOML: ...".
Result<> CollectToml(const Passage& passage, const std::string& graph, Collection& out);

}  // namespace fathom
