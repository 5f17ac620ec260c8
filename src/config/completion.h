// How does a shell complete the command line of fathom?
//
// Scripts are written from the table of options: commands, the options of each command, values of
// choices, files and folders where an option takes a path, and the pages of `fathom docs`. Other
// names of an option are not offered, but their values are completed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/option.h"

namespace fathom {

enum class Shell : uint8_t { kBash, kZsh, kFish };

inline constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

std::optional<Shell> ShellOf(std::string_view name);

// The whole script. `pages`: the names that `fathom docs` takes.
std::string CompletionScript(Shell shell, std::span<const std::string_view> pages);

}  // namespace fathom
