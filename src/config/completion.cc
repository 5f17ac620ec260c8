#include "config/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "config/completion_parts.h"

namespace fathom {

// The table names values for people; a name with FILE or DIR in it is a path on this machine.
ValueKind ValueKindOf(const Option& option) {
  const std::string_view shown = option.Placeholder();
  if (option.type == OptionType::kFlag) return ValueKind::kNone;
  if (!option.choices.empty()) return ValueKind::kWords;
  if (shown.contains("FILE")) return ValueKind::kFiles;
  if (shown.contains("DIR")) return ValueKind::kFolders;
  return ValueKind::kUnknown;
}

std::vector<std::string> OptionWords(Command command) {
  std::vector<std::string> words = {"--help"};
  for (const Option& option : Options()) {
    if (!option.BelongsTo(command)) continue;
    words.push_back(fmt::format("--{}", option.name));
    if (option.type == OptionType::kFlag) words.push_back(fmt::format("--no-{}", option.name));
  }
  return words;
}

std::vector<std::string> AliasWords(const Option& option) {
  std::vector<std::string> words;
  for (const std::string_view alias : option.aliases) {
    if (!alias.empty()) words.push_back(fmt::format("--{}", alias));
  }
  return words;
}

std::string_view Hint(std::string_view help) {
  const size_t end = std::min({help.find("; "), help.find(": "), help.size()});
  const std::string_view hint = help.substr(0, end);
  return hint.ends_with('.') ? hint.substr(0, hint.size() - 1) : hint;
}

std::string InQuotes(std::string_view text, std::string_view quote) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string(quote) : std::string(1, c);
  return out += '\'';
}

std::optional<Shell> ShellOf(std::string_view name) {
  const auto found = std::ranges::find(kShells, name);
  if (found == std::end(kShells)) return std::nullopt;
  return static_cast<Shell>(found - std::begin(kShells));
}

std::string CompletionScript(Shell shell, std::span<const std::string_view> pages) {
  switch (shell) {
    case Shell::kBash:
      return BashCompletion(pages);
    case Shell::kZsh:
      return ZshCompletion(pages);
    case Shell::kFish:
      return FishCompletion(pages);
  }
  CHECK(false);
}

}  // namespace fathom
