#include "diagnose/findings/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.h"

namespace fathom {
namespace {

constexpr std::string_view kHidden = "***";
constexpr std::array<std::string_view, 8> kWords = {
    "key", "apikey", "token", "secret", "password", "passwd", "credential", "authorization"};

bool InName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

// "HF_TOKEN", "--api-key": a name of which a part is one of the words. "tokens_per_block" is none.
bool IsSecretName(std::string_view name) {
  return std::ranges::any_of(SplitAny(name, "-_"), [](std::string_view part) {
    return std::ranges::any_of(kWords,
                               [&](std::string_view word) { return EqualsIgnoreCase(part, word); });
  });
}

// Where the first secret name of the line ends; npos: there is none.
size_t EndOfSecretName(std::string_view line) {
  for (size_t at = 0; at < line.size();) {
    if (!InName(line[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < line.size() && InName(line[end])) ++end;
    if (IsSecretName(line.substr(at, end - at))) return end;
    at = end;
  }
  return std::string_view::npos;
}

// What separates a name from its value, and the quotes around either.
bool Separates(char c) {
  return c == ' ' || c == ':' || c == '=' || c == '"' || c == '\'' || c == ',' || c == '\t';
}

// A line whose value is secret because the line before names it: "value: x", "- x", "x".
std::string HideValue(std::string_view line) {
  size_t at = 0;
  while (at < line.size() && (line[at] == ' ' || line[at] == '+' || line[at] == '-')) ++at;
  constexpr std::string_view kValue = "value";
  if (line.substr(at).starts_with(kValue)) at += kValue.size();
  while (at < line.size() && Separates(line[at])) ++at;
  return at == line.size() ? std::string(line) : std::string(line.substr(0, at)).append(kHidden);
}

// "value: x", or an item of a list that is no flag and no map.
bool IsValueAlone(std::string_view line) {
  const std::string_view text = Trim(line);
  if (text.starts_with("value:")) return true;
  return text.starts_with("- ") && !text.starts_with("- -") && text.find(": ") == text.npos;
}

std::string WithoutUserInfo(std::string line) {
  for (size_t at = line.find("://"); at != std::string::npos; at = line.find("://", at + 3)) {
    const size_t begin = at + 3;
    const size_t end = line.find_first_of("/ \"'?", begin);
    const size_t sign = line.substr(begin, end - begin).rfind('@');
    if (sign != std::string::npos) line.replace(begin, sign, kHidden);
  }
  return line;
}

}  // namespace

std::string WithoutSecrets(std::string_view lines) {
  std::string out;
  bool next_is_secret = false;
  bool begins_hunk = false;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    if (std::exchange(next_is_secret, false)) {
      out += HideValue(line);
    } else if (std::exchange(begins_hunk, line.starts_with("@@")) && IsValueAlone(line)) {
      out += HideValue(line);  // its name is not in the diff
    } else if (const size_t named = EndOfSecretName(line); named != std::string_view::npos) {
      size_t value = named;
      while (value < line.size() && Separates(line[value])) ++value;
      next_is_secret = value == line.size();
      out.append(line.substr(0, value));
      if (!next_is_secret) out.append(kHidden);
    } else {
      out += WithoutUserInfo(std::string(line));
    }
    if (end < lines.size()) out += '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

}  // namespace fathom
