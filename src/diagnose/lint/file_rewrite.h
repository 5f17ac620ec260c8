// Another text for a file, all of it or none.
//
// The new text is written beside the file, with the file's mode, and then takes its name; what is
// read back must be it. Of a symbolic link the file that it leads to is rewritten.
//
// Errors  kCaller: what the system says; a file that has changed since `before` was read. The file
//         is as it was.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

Result<> RewriteFile(const std::string& path, std::string_view before, std::string_view after);

}  // namespace fathom
