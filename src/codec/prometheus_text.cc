#include "codec/prometheus_text.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace fathom {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

bool StartsName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}

bool ContinuesName(char c) { return StartsName(c) || (c >= '0' && c <= '9'); }

void SkipBlanks(std::string_view& text) {
  text.remove_prefix(std::ranges::find_if_not(text, IsBlank) - text.begin());
}

bool Take(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

// Empty if there is none. Labels must not have colons, but that is no reason to drop a line.
std::string_view TakeName(std::string_view& text) {
  if (text.empty() || !StartsName(text.front())) return {};
  const size_t length = std::ranges::find_if_not(text, ContinuesName) - text.begin();
  const std::string_view name = text.substr(0, length);
  text.remove_prefix(length);
  return name;
}

// Up to the closing quote, with its escapes.
std::optional<std::string_view> TakeQuoted(std::string_view& text) {
  if (!Take(text, '"')) return std::nullopt;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      const std::string_view value = text.substr(0, at);
      text.remove_prefix(at + 1);
      return value;
    }
  }
  return std::nullopt;
}

struct WrittenLabel {
  std::string_view name;
  std::string_view value;  // with its escapes
};

// The next label and the comma after it.
std::optional<WrittenLabel> TakeLabel(std::string_view& text) {
  SkipBlanks(text);
  const std::string_view name = TakeName(text);
  if (name.empty()) return std::nullopt;
  SkipBlanks(text);
  if (!Take(text, '=')) return std::nullopt;
  SkipBlanks(text);
  const auto value = TakeQuoted(text);
  if (!value) return std::nullopt;
  SkipBlanks(text);
  Take(text, ',');
  return WrittenLabel{name, *value};
}

// The text between the braces, empty if there are none; nullopt if it is invalid.
std::optional<std::string_view> TakeLabels(std::string_view& text) {
  if (!Take(text, '{')) return std::string_view();
  const std::string_view labels = text;
  for (;;) {
    SkipBlanks(text);
    const size_t length = labels.size() - text.size();
    if (Take(text, '}')) return labels.substr(0, length);
    if (!TakeLabel(text)) return std::nullopt;
  }
}

std::optional<double> TakeNumber(std::string_view& text) {
  std::string_view digits = text;
  if (Take(digits, '+') && digits.starts_with('-')) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) return std::nullopt;
  digits.remove_prefix(end - digits.data());
  if (!digits.empty() && !IsBlank(digits.front())) return std::nullopt;
  text = digits;
  return value;
}

// Whether only optional parts follow: a timestamp, an exemplar.
bool EndsWell(std::string_view text) {
  SkipBlanks(text);
  if (!text.empty() && text.front() != '#') {
    if (!TakeNumber(text)) return false;
    SkipBlanks(text);
  }
  return text.empty() || text.front() == '#';
}

std::optional<PrometheusSample> ReadSample(std::string_view line) {
  const std::string_view name = TakeName(line);
  if (name.empty()) return std::nullopt;
  const bool apart = !line.empty() && IsBlank(line.front());
  SkipBlanks(line);
  const bool braces = line.starts_with('{');
  const auto labels = TakeLabels(line);
  if (!labels || !(apart || braces)) return std::nullopt;
  SkipBlanks(line);
  const auto value = TakeNumber(line);
  if (!value || !EndsWell(line)) return std::nullopt;
  return PrometheusSample(name, *labels, *value);
}

// An escape that the format does not define is kept as it is.
std::string_view Unescape(std::string_view written, std::string& scratch) {
  scratch.clear();
  for (size_t at = 0; at < written.size(); ++at) {
    const char next = at + 1 < written.size() ? written[at + 1] : '\0';
    if (written[at] == '\\' && (next == '\\' || next == '"' || next == 'n')) {
      scratch += next == 'n' ? '\n' : next;
      ++at;
    } else {
      scratch += written[at];
    }
  }
  return scratch;
}

}  // namespace

std::optional<std::string_view> PrometheusSample::Label(std::string_view name,
                                                        std::string& scratch) const {
  std::string_view rest = labels_;
  while (const auto label = TakeLabel(rest)) {
    if (label->name != name) continue;
    if (label->value.find('\\') == std::string_view::npos) return label->value;
    return Unescape(label->value, scratch);
  }
  return std::nullopt;
}

std::optional<PrometheusSample> PrometheusReader::Next() {
  while (!rest_.empty()) {
    const size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    SkipBlanks(line);
    if (line.empty() || line.front() == '#') continue;
    if (const auto sample = ReadSample(line)) return sample;
    ++skipped_;
  }
  return std::nullopt;
}

}  // namespace fathom
