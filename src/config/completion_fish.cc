#include <fmt/format.h>

#include <vector>

#include "base/version.h"
#include "config/completion.h"
#include "config/completion_parts.h"
#include "config/help.h"

namespace fathom {
namespace {

constexpr std::string_view kFishConditions = R"script(
function __fathom_no_command
    test (count (commandline -opc)) -eq 1
end

# COMMAND: it is the one on the command line.
function __fathom_command
    set -l before (commandline -opc)
    test "$before[2]" = "$argv[1]"
end

# COMMAND OPTION...: the word at the cursor is a value of one of these.
function __fathom_value
    __fathom_command $argv[1]
    and contains -- (commandline -opc)[-1] $argv[2..]
end

# COMMAND OPTION...: the same for options that take several values.
function __fathom_values
    __fathom_command $argv[1]
    and contains -- (string match -- '--*' (commandline -opc))[-1] $argv[2..]
end

complete -c fathom -f
)script";

constexpr std::string_view kFishFolders = "(__fish_complete_directories)";

std::string FishQuoted(std::string_view text) {
  std::string doubled;
  for (const char c : text) doubled += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return InQuotes(doubled, "\\'");
}

// How fish completes a value, behind the options that say when.
std::string FishValue(const Option& option) {
  switch (ValueKindOf(option)) {
    case ValueKind::kWords:
      return fmt::format("-x -a {}", FishQuoted(fmt::format("{}", fmt::join(option.choices, " "))));
    case ValueKind::kFiles:
      return "-r -F";
    case ValueKind::kFolders:
      return fmt::format("-x -a {}", FishQuoted(kFishFolders));
    case ValueKind::kUnknown:
      return "-x";
    case ValueKind::kNone:
      break;
  }
  return "";
}

// The same for a word that fish does not take for an option's value.
std::string FishWord(const Option& option) {
  switch (ValueKindOf(option)) {
    case ValueKind::kWords:
      return fmt::format("-a {}", FishQuoted(fmt::format("{}", fmt::join(option.choices, " "))));
    case ValueKind::kFiles:
      return "-F";
    case ValueKind::kFolders:
      return fmt::format("-a {}", FishQuoted(kFishFolders));
    case ValueKind::kUnknown:
    case ValueKind::kNone:
      break;
  }
  return "";
}

void AppendRule(std::string& out, std::string_view condition, std::string_view rule) {
  out += fmt::format("complete -c fathom -n {} {}\n", FishQuoted(condition), rule);
}

void AppendFishOption(std::string& out, Command command, const Option& option) {
  const std::string here = fmt::format("__fathom_command {}", NameOf(command));
  const std::string hint = FishQuoted(Hint(option.help));
  if (option.type == OptionType::kFlag) {
    AppendRule(out, here, fmt::format("-l {} -d {}", option.name, hint));
    AppendRule(out, here,
               fmt::format("-l no-{} -d {}", option.name,
                           FishQuoted(fmt::format("turns off --{}", option.name))));
    return;
  }
  AppendRule(out, here, fmt::format("-l {} {} -d {}", option.name, FishValue(option), hint));
  const std::string word = FishWord(option);
  std::vector<std::string> names = AliasWords(option);
  if (option.list()) names.insert(names.begin(), fmt::format("--{}", option.name));
  if (word.empty() || names.empty()) return;
  AppendRule(out,
             fmt::format("__fathom_value{} {} {}", option.list() ? "s" : "", NameOf(command),
                         fmt::join(names, " ")),
             word);
}

void AppendFishCommand(std::string& out, Command command) {
  out += '\n';
  const std::string here = fmt::format("__fathom_command {}", NameOf(command));
  AppendRule(out, here, "-l help -d 'prints the options'");
  for (const Option& option : Options()) {
    if (option.BelongsTo(command)) AppendFishOption(out, command, option);
  }
  if (PositionalOption(command) != nullptr) AppendRule(out, here, "-F");
}

}  // namespace

std::string FishCompletion(std::span<const std::string_view> pages) {
  std::string out = fmt::format(
      "# Completions of fathom {} for fish; printed by \"fathom completion fish\".\n", kVersion);
  out += kFishConditions;
  for (const auto& [name, summary] : AllCommands()) {
    AppendRule(out, "__fathom_no_command",
               fmt::format("-a {} -d {}", name, FishQuoted(Hint(summary))));
  }
  for (const Command command : kCommands) AppendFishCommand(out, command);
  out += '\n';
  AppendRule(out, "__fathom_command docs", "-l help -d 'prints the usage'");
  AppendRule(out, "__fathom_command docs", "-l docs-url -x -d 'URL of docs/, for links'");
  AppendRule(out, "__fathom_command docs",
             fmt::format("-a {}", FishQuoted(fmt::format("{}", fmt::join(pages, " ")))));
  AppendRule(out, "__fathom_command completion", "-l help -d 'prints the usage'");
  AppendRule(out, "__fathom_command completion",
             fmt::format("-a {}", FishQuoted(fmt::format("{}", fmt::join(kShells, " ")))));
  AppendRule(out, "__fathom_command bench", "-l help -d 'prints the usage'");
  AppendRule(out, "__fathom_command bench", "-F");
  return out;
}

}  // namespace fathom
