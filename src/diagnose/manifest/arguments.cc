#include "diagnose/manifest/arguments.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <ranges>

namespace fathom {
namespace {

// Nobody writes longer ones with variables in them.
constexpr size_t kMaxExpandable = 4096;

bool IsFlag(std::string_view word) {
  if (word.starts_with("--")) return word.size() > 2;
  return word.size() > 1 && word[0] == '-' &&
         std::isalpha(static_cast<unsigned char>(word[1])) != 0;
}

// Flags of these forms are switches: a word behind them is somebody else's.
bool IsSwitch(std::string_view flag) {
  constexpr std::string_view kForms[] = {"--enable-", "--disable-", "--no-",     "--trust-",
                                         "--use-",    "--publish-", "--enforce-"};
  std::string name(flag);
  std::ranges::replace(name, '_', '-');
  return std::ranges::any_of(kForms, [&](std::string_view form) { return name.starts_with(form); });
}

// Flags with any number of values.
bool TakesMany(std::string_view flag) { return flag == "--worker-urls"; }

Written BareFlag(const ShellWord& word) { return Written{word.text, {}, word.place, std::nullopt}; }

std::optional<std::string> ValueOf(std::string_view name, std::span<const Written> variables) {
  for (const Written& variable : std::views::reverse(variables)) {
    if (variable.name == name && variable.span) return variable.value;
  }
  return std::nullopt;
}

// The name and the default of what stands at `at`, behind the $.
struct Reference {
  std::string_view name;
  std::optional<std::string_view> fallback;
  size_t length = 0;  // behind the $
};

Reference ReferenceAt(std::string_view text) {
  if (text.starts_with('{') || text.starts_with('(')) {
    const size_t close = text.find(text[0] == '{' ? '}' : ')');
    if (close == text.npos) return {};
    std::string_view inside = text.substr(1, close - 1);
    const size_t colon = inside.find(":-");
    if (colon == inside.npos) return {inside, std::nullopt, close + 1};
    return {inside.substr(0, colon), inside.substr(colon + 2), close + 1};
  }
  size_t end = 0;
  while (end < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
    ++end;
  }
  return {text.substr(0, end), std::nullopt, end};
}

}  // namespace

std::vector<Written> FlagsOf(std::span<const ShellWord> words) {
  std::vector<Written> flags;
  if (!words.empty() && !IsFlag(words[0].text)) flags.push_back(words[0].From("--model", 0));
  for (size_t at = 0; at < words.size(); ++at) {
    const ShellWord& word = words[at];
    if (!IsFlag(word.text)) continue;
    const size_t equals = word.text.find('=');
    if (equals != word.text.npos) {
      flags.push_back(word.From(word.text.substr(0, equals), equals + 1));
      continue;
    }
    const bool valued =
        at + 1 < words.size() && !IsFlag(words[at + 1].text) && !IsSwitch(word.text);
    if (!valued) {
      flags.push_back(BareFlag(word));
      continue;
    }
    do {
      flags.push_back(words[++at].From(word.text, 0));
    } while (TakesMany(word.text) && at + 1 < words.size() && !IsFlag(words[at + 1].text));
  }
  return flags;
}

std::string Expanded(std::string_view text, std::span<const Written> variables) {
  constexpr size_t kMaxExpanded = 1 << 16;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Reference reference = text[at] == '$' ? ReferenceAt(text.substr(at + 1)) : Reference{};
    auto value = reference.length == 0 ? std::nullopt : ValueOf(reference.name, variables);
    if (!value && reference.fallback) value = std::string(*reference.fallback);
    if (!value || out.size() + value->size() > kMaxExpanded) {
      out.push_back(text[at++]);
      continue;
    }
    out.append(*value);
    at += 1 + reference.length;
  }
  return out;
}

void ExpandAll(std::vector<Written>& settings, std::span<const Written> variables) {
  for (Written& setting : settings) {
    if (setting.value.size() > kMaxExpandable || !setting.value.contains('$')) continue;
    std::string value = Expanded(setting.value, variables);
    if (value == setting.value) continue;
    setting.value = std::move(value);
    setting.span.reset();
  }
}

}  // namespace fathom
