// What does a TOML text say, and where does it say it?
//
// A flat list: tables are part of the names, and each value of an array is an entry of its own.
// Dates are taken as they stand.
//
// Memory  At most kMaxTomlEntries entries with names of at most kMaxTomlName bytes.
// Errors  kCaller, "x.toml:12:3: bad TOML: ...".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "diagnose/manifest/passage.h"
#include "diagnose/manifest/written.h"

namespace fathom {

constexpr size_t kMaxTomlEntries = 10'000;
constexpr size_t kMaxTomlName = 512;
constexpr size_t kMaxTomlDepth = 50;

// Their names are dotted: "frontend.env.DYN_ROUTER_MODE".
Result<std::vector<Written>> ReadToml(const Passage& passage);

}  // namespace fathom
