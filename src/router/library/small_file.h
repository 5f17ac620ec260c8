// Reads and writes whole files of bounded size.
//
// Errors  kCaller: the reason alone, without the path, which the caller knows.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

// Only a regular file: a pipe or a device is refused, and never waited for.
Result<std::string> ReadRegularFile(const std::string& path, size_t most_bytes);

// Others see the old content or the new one, never a part of it.
Result<void> WriteWhole(const std::string& path, std::string_view content);
// The same for a symbolic link.
Result<void> LinkWhole(const std::string& path, const std::string& target);

}  // namespace fathom
