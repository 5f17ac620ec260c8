#include "diagnose/findings/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
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

std::string WithoutUserInfo(std::string line) {
  for (size_t at = line.find("://"); at != std::string::npos; at = line.find("://", at + 3)) {
    const size_t begin = at + 3;
    const size_t end = line.find_first_of("/ \"'?", begin);
    const size_t sign = line.substr(begin, end - begin).rfind('@');
    if (sign != std::string::npos) line.replace(begin, sign, kHidden);
  }
  return line;
}

size_t IndentOf(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

// Of the name in "  - name: x", which what belongs to it is further in than.
size_t ColumnOfName(std::string_view line) {
  return std::min(line.find_first_not_of(" -\t"), line.size());
}

// "|", ">-": the value stands in the lines below that are further in.
bool BeginsBlock(std::string_view value) {
  value = Trim(value);
  return !value.empty() && value.size() <= 3 && (value[0] == '|' || value[0] == '>');
}

// Line by line: a name may be on one line and its value on the next ones.
class SecretFilter {
 public:
  // The line with what must not be seen replaced.
  std::string Shown(std::string_view line) {
    if (block_indent_ && !Trim(line).empty()) {
      if (IndentOf(line) > *block_indent_) {
        return std::string(line.substr(0, IndentOf(line))).append(kHidden);
      }
      block_indent_.reset();
    }
    if (std::exchange(next_is_secret_, false)) return HideBelowName(line);
    const size_t named = EndOfSecretName(line);
    if (named == std::string_view::npos) return WithoutUserInfo(std::string(line));
    return HideBehind(line, named);
  }

 private:
  std::string HideBelowName(std::string_view line) {
    const size_t colon = line.find(':');
    if (colon != line.npos && BeginsBlock(line.substr(colon + 1))) {
      block_indent_ = ColumnOfName(line);
      return std::string(line);
    }
    return HideValue(line);
  }

  std::string HideBehind(std::string_view line, size_t named) {
    size_t value = named;
    while (value < line.size() && Separates(line[value])) ++value;
    if (BeginsBlock(line.substr(value))) {
      block_indent_ = ColumnOfName(line);
      return std::string(line);
    }
    next_is_secret_ = value == line.size();
    std::string shown(line.substr(0, value));
    return next_is_secret_ ? shown : shown.append(kHidden);
  }

  bool next_is_secret_ = false;
  std::optional<size_t> block_indent_;  // of the line above the block
};

template <class Take>
void ForEachLine(std::string_view lines, Take take) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    take(lines.substr(0, end), end < lines.size());
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

}  // namespace

std::string WithoutSecrets(std::string_view lines) {
  std::string out;
  SecretFilter filter;
  ForEachLine(lines, [&](std::string_view line, bool ended) {
    out += filter.Shown(line);
    if (ended) out += '\n';
  });
  return out;
}

std::vector<bool> SecretLines(std::string_view text) {
  std::vector<bool> secret;
  SecretFilter filter;
  ForEachLine(text,
              [&](std::string_view line, bool) { secret.push_back(filter.Shown(line) != line); });
  return secret;
}

}  // namespace fathom
