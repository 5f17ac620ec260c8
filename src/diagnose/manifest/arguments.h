// Which flags are among these words?
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/manifest/command_line.h"
#include "diagnose/manifest/written.h"

namespace fathom {

// --name=value, --name value, --name. A word in front of all flags is the model: "--model".
std::vector<Written> FlagsOf(std::span<const ShellWord> words);

// With $NAME, ${NAME}, ${NAME:-default} and $(NAME) replaced by what `variables` say, the last one
// of a name; what they do not say stays as it is.
std::string Expanded(std::string_view text, std::span<const Written> variables);

// Expands the values; what has changed cannot be edited in place any more.
void ExpandAll(std::vector<Written>& settings, std::span<const Written> variables);

}  // namespace fathom
