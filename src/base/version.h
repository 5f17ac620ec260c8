// The version of this Fathom.
#pragma once

#include <string_view>

namespace fathom {

constexpr std::string_view kVersion = FATHOM_VERSION;  // from CMake's project()

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "gcc " __VERSION__;
#endif

}  // namespace fathom
