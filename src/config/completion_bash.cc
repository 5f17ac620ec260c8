#include <fmt/format.h>

#include <map>
#include <vector>

#include "base/version.h"
#include "config/completion.h"
#include "config/completion_parts.h"
#include "config/help.h"

namespace fathom {
namespace {

constexpr size_t kScriptWidth = 100;

// Reads the words before the cursor, because bash knows nothing about them. It splits words at
// COMP_WORDBREAKS, so that --name=value and a URL are several, unless the user has changed it.
constexpr std::string_view kBashReader = R"script(
_fathom() {
  local current=$2 command=${COMP_WORDS[1]} option='' last='' prefix='' word i
  local kind='' several='' words='' positional=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _fathom_words "$_fathom_commands" "$current"
    return
  fi
  for ((i = 2; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    case $word in
      --?*=* | --help) option='' last='' ;;
      --?*)
        option=$word
        last=$word
        _fathom_value "$command" "$option"
        [[ $kind != switch && $kind != negation ]] || option=''
        ;;
      = | :) option=$last ;;
      *) [[ $several ]] || option='' ;;
    esac
  done
  [[ ${COMP_WORDS[COMP_CWORD]} != = ]] || current='' option=$last
  if [[ $current == --?*=* ]]; then
    option=${current%%=*}
    prefix=$option=
    current=${current#*=}
    _fathom_value "$command" "$option"
  elif [[ $several && ($current == -* || ! $kind) ]]; then
    option=''
  fi
  if [[ ! $option ]]; then
    _fathom_arguments "$command"
    kind=words
    [[ ! $positional || $current == -* ]] || kind=$positional
  fi
  case $kind in
    switch) _fathom_words 'true false' "$current" ;;
    words) _fathom_words "$words" "$current" ;;
    files) _fathom_paths -f "$current" ;;
    folders) _fathom_paths -d "$current" ;;
  esac
  [[ ! $prefix ]] || COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
}

_fathom_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_fathom_paths() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

complete -F _fathom fathom
)script";

// In a case statement, which reads them as "one | or | another".
std::string Pattern(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " | "));
}

std::string BashWords(const std::vector<std::string>& words) {
  return fmt::format("words='\n{}'",
                     Wrapped(fmt::format("{}", fmt::join(words, " ")), 0, 8, kScriptWidth));
}

// The shell code that says what the value of an option is; empty where nothing is known.
std::string ValueInBash(const Option& option) {
  std::string code;
  switch (ValueKindOf(option)) {
    case ValueKind::kNone:
      code = "kind=switch";
      break;
    case ValueKind::kWords:
      code = fmt::format("kind=words words='{}'", fmt::join(option.choices, " "));
      break;
    case ValueKind::kFiles:
      code = "kind=files";
      break;
    case ValueKind::kFolders:
      code = "kind=folders";
      break;
    case ValueKind::kUnknown:
      break;
  }
  if (option.list()) code += code.empty() ? "several=1" : " several=1";
  return code;
}

void AppendValues(std::string& out, Command command) {
  std::map<std::string, std::vector<std::string>> names;  // by what is to be done for them
  for (const Option& option : Options()) {
    if (!option.BelongsTo(command)) continue;
    const std::string code = ValueInBash(option);
    if (code.empty()) continue;
    names[code].push_back(fmt::format("--{}", option.name));
    for (std::string& alias : AliasWords(option)) names[code].push_back(std::move(alias));
    if (option.type == OptionType::kFlag) {
      names["kind=negation"].push_back(fmt::format("--no-{}", option.name));
    }
  }
  out += fmt::format("    {})\n      case $2 in\n", NameOf(command));
  for (const auto& [code, options] : names) {
    out += fmt::format("        {}) {} ;;\n", Pattern(options), code);
  }
  out += "      esac\n      ;;\n";
}

void AppendArguments(std::string& out, Command command) {
  out += fmt::format("    {})\n", NameOf(command));
  if (PositionalOption(command) != nullptr) out += "      positional=files\n";
  out += fmt::format("      {}\n      ;;\n", BashWords(OptionWords(command)));
}

}  // namespace

std::string BashCompletion(std::span<const std::string_view> pages) {
  std::string out = fmt::format(
      "# Completions of fathom {} for bash; printed by \"fathom completion bash\".\n\n", kVersion);
  std::vector<std::string> commands;
  for (const CommandSummary& command : AllCommands()) commands.emplace_back(command.name);
  out += fmt::format("_fathom_commands='{}'\n", fmt::join(commands, " "));

  out += "\n# COMMAND OPTION: what its value is, in the caller's variables.\n_fathom_value() {\n";
  out += "  kind='' several='' words=''\n  case $1 in\n";
  for (const Command command : kCommands) AppendValues(out, command);
  out += "  esac\n}\n";

  out += "\n# COMMAND: its options and what else it takes, in the caller's variables.\n";
  out += "_fathom_arguments() {\n  words='' positional=''\n  case $1 in\n";
  for (const Command command : kCommands) AppendArguments(out, command);
  std::vector<std::string> docs(pages.begin(), pages.end());
  docs.insert(docs.begin(), {"--help", "--docs-url"});
  out += fmt::format("    docs)\n      {}\n      ;;\n", BashWords(docs));
  out += fmt::format("    completion) words='--help {}' ;;\n", fmt::join(kShells, " "));
  out += "    bench) words='--help' positional=files ;;\n  esac\n}\n";
  return out += kBashReader;
}

}  // namespace fathom
