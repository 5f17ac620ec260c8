#include <fmt/format.h>

#include <vector>

#include "base/version.h"
#include "config/completion.h"
#include "config/completion_parts.h"
#include "config/help.h"

namespace fathom {
namespace {

// One argument of _arguments or _describe, in single quotes.
std::string ZshQuoted(std::string_view text) { return InQuotes(text, "'\\''"); }

std::string Escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || special.contains(c)) out += '\\';
    out += c;
  }
  return out;
}

// Within the brackets of _arguments.
std::string ZshHint(std::string_view help) { return Escaped(Hint(help), "[]:"); }

std::string ZshAction(const Option& option) {
  switch (ValueKindOf(option)) {
    case ValueKind::kWords:
      return fmt::format("({})", fmt::join(option.choices, " "));
    case ValueKind::kFiles:
      return "_fathom_files";
    case ValueKind::kFolders:
      return "_fathom_files -/";
    case ValueKind::kNone:
    case ValueKind::kUnknown:
      break;
  }
  return " ";
}

// ":PORT: "
std::string ZshValue(const Option& option) {
  return fmt::format(":{}:{}", Escaped(option.Placeholder(), ":"), ZshAction(option));
}

std::vector<std::string> ZshSpecs(const Option& option) {
  const std::string hint = ZshHint(option.help);
  if (option.type == OptionType::kFlag) {
    return {fmt::format("(--no-{0})--{0}[{1}]", option.name, hint),
            fmt::format("(--{0})--no-{0}[turns off --{0}]", option.name)};
  }
  const std::string_view again = option.list() ? "*" : "";
  std::vector<std::string> specs = {
      fmt::format("{}--{}=[{}]{}", again, option.name, hint, ZshValue(option))};
  for (const std::string& alias : AliasWords(option)) {
    specs.push_back(fmt::format("!{}{}={}", again, alias, ZshValue(option)));
  }
  return specs;
}

void AppendSpec(std::string& out, std::string_view spec) {
  out += fmt::format(" \\\n            {}", ZshQuoted(spec));
}

void AppendZshCommand(std::string& out, Command command) {
  out += fmt::format("        {})\n          _arguments", NameOf(command));
  AppendSpec(out, "--help[prints the options]");
  for (const Option& option : Options()) {
    if (!option.BelongsTo(command)) continue;
    for (const std::string& spec : ZshSpecs(option)) AppendSpec(out, spec);
  }
  AppendSpec(out, PositionalOption(command) != nullptr ? "*:FILE:_files" : "*: :_fathom_more");
  out += "\n          ;;\n";
}

// _arguments gives an option one value. Those behind it are completed by the last option before.
void AppendMore(std::string& out) {
  out +=
      "_fathom_more() {\n  local last=${${words[1,CURRENT-1]}[(R)--*]}\n"
      "  case $words[1]:$last in\n";
  for (const Command command : kCommands) {
    for (const Option& option : Options()) {
      if (!option.BelongsTo(command) || !option.list()) continue;
      const ValueKind kind = ValueKindOf(option);
      if (kind != ValueKind::kFiles && kind != ValueKind::kFolders) continue;
      std::vector<std::string> names = AliasWords(option);
      names.push_back(fmt::format("--{}", option.name));
      out += fmt::format("    {}:({})) {} ;;\n", NameOf(command), fmt::join(names, "|"),
                         ZshAction(option));
    }
  }
  out += "  esac\n}\n\n";
}

// Also behind MODEL=.
constexpr std::string_view kZshFiles = R"script(
_fathom_files() {
  compset -P '*='
  _files "$@"
}

)script";

constexpr std::string_view kZshCommands = R"script(
_fathom() {
  local curcontext=$curcontext state state_descr line
  local -a commands
  typeset -A opt_args
  _arguments -C '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      commands=(
)script";

constexpr std::string_view kZshArguments = R"script(      )
      _describe command commands
      ;;
    argument)
      case $words[1] in
)script";

// A file in fpath is the function itself; where it is sourced, the function has to be made known.
constexpr std::string_view kZshEnd = R"script(      esac
      ;;
  esac
}

if [[ $funcstack[1] == _fathom ]]; then
  _fathom "$@"
else
  compdef _fathom fathom
fi
)script";

// A command that is not in the table.
void AppendOther(std::string& out, std::string_view command, std::span<const std::string> specs) {
  out += fmt::format("        {})\n          _arguments", command);
  AppendSpec(out, "--help[prints the usage]");
  for (const std::string& spec : specs) AppendSpec(out, spec);
  out += "\n          ;;\n";
}

}  // namespace

std::string ZshCompletion(std::span<const std::string_view> pages) {
  std::string out = fmt::format(
      "#compdef fathom\n"
      "# Completions of fathom {} for zsh; printed by \"fathom completion zsh\".\n",
      kVersion);
  out += kZshFiles;
  AppendMore(out);
  out += kZshCommands.substr(1);
  for (const auto& [name, summary] : AllCommands()) {
    out += fmt::format("        {}\n", ZshQuoted(fmt::format("{}:{}", name, Hint(summary))));
  }
  out += kZshArguments;
  for (const Command command : kCommands) AppendZshCommand(out, command);
  const std::string docs[] = {"--docs-url=[URL of docs/, for links]:URL: ",
                              fmt::format("1:page:({})", fmt::join(pages, " "))};
  const std::string shells[] = {fmt::format("1:shell:({})", fmt::join(kShells, " "))};
  const std::string files[] = {"*:FILE:_files"};
  AppendOther(out, "docs", docs);
  AppendOther(out, "completion", shells);
  AppendOther(out, "bench", files);
  return out += kZshEnd;
}

}  // namespace fathom
