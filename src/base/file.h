// A file, whole.
//
// Errors  kCaller: what the system says about it, without the path, which the caller knows; and
//         files of more than kMaxFileBytes, whatever they are.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace fathom {

constexpr size_t kMaxFileBytes = size_t{512} << 20;

Result<std::string> ReadFile(const std::string& path);

}  // namespace fathom
