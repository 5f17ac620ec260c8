// What do the completion scripts of all shells have in common?
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/option.h"

namespace fathom {

// What can stand in place of an option's value.
enum class ValueKind : uint8_t { kNone, kWords, kFiles, kFolders, kUnknown };

ValueKind ValueKindOf(const Option& option);

// "--host --port": the options of a command, and --help.
std::vector<std::string> OptionWords(Command command);

// "--http-host": the other names of an option.
std::vector<std::string> AliasWords(const Option& option);

// What an option is about, in the few words that a menu has room for.
std::string_view Hint(std::string_view help);

// 'text', with what the shell would end the quotes at replaced by `quote`.
std::string InQuotes(std::string_view text, std::string_view quote);

std::string BashCompletion(std::span<const std::string_view> pages);
std::string ZshCompletion(std::span<const std::string_view> pages);
std::string FishCompletion(std::span<const std::string_view> pages);

}  // namespace fathom
