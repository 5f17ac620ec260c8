// Reads a whole file.
//
// Errors  kCaller: the system's error text without the path, which the caller knows; also for any
//         file of more than kMaxFileBytes.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace fathom {

constexpr size_t kMaxFileBytes = size_t{512} << 20;

Result<std::string> ReadFile(const std::string& path);

}  // namespace fathom
