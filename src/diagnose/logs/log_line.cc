#include "diagnose/logs/log_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

constexpr size_t kMaxMembers = 64;
constexpr size_t kMaxPrefix = 512;      // in front of an object
constexpr double kLargestValue = 1e15;  // no count in a log is more
constexpr uint64_t kLargestSize = 1 << 20;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsNameByte(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '-';
}

// The sequences that colour a terminal: ESC [ digits and semicolons, a letter.
void RemoveColours(std::string& text) {
  size_t kept = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\x1b') {
      text[kept++] = text[at];
    } else if (at + 1 < text.size() && text[at + 1] == '[') {
      at = std::min(text.find_first_not_of("0123456789;", at + 2), text.size());
    }
  }
  text.resize(kept);
}

// Numbers are read at their front: "57.46x", "470,768 tokens", "0)". Not finite and negative ones
// are none.
std::optional<double> ReadReal(std::string_view text) {
  std::string digits;
  for (size_t at = 0; at < text.size() && digits.size() < 24; ++at) {
    if (IsDigit(text[at]) || text[at] == '.') {
      digits += text[at];
    } else if (text[at] != ',' || at + 3 >= text.size() || !IsDigit(text[at + 1]) ||
               !IsDigit(text[at + 2]) || !IsDigit(text[at + 3])) {
      break;
    }
  }
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                    std::chars_format::fixed);
  if (read.ec != std::errc() || value > kLargestValue) return std::nullopt;
  return value;
}

// The value that begins here, quotes included.
std::string_view ValueAtFront(std::string_view text) {
  if (!text.starts_with('"')) {
    std::string_view value = text.substr(0, text.find_first_of(" \t\r\n,"));
    while (value.ends_with(')') || value.ends_with(';')) value.remove_suffix(1);
    return value;
  }
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return text.substr(0, at + 1);
    }
  }
  return text;
}

std::string_view NameAtEnd(std::string_view text) {
  size_t from = text.size();
  while (from > 0 && IsNameByte(text[from - 1])) --from;
  return text.substr(from);
}

std::optional<std::string_view> FieldIn(std::string_view text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    const size_t equals = text.find('=', at);
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view value = ValueAtFront(text.substr(equals + 1));
    if (NameAtEnd(text.substr(at, equals - at)) == key) return value;
    at = equals + 1 + value.size();
  }
  return std::nullopt;
}

std::string_view WithoutQuotes(std::string_view value) {
  if (value.starts_with('"')) value.remove_prefix(1);
  if (value.ends_with('"')) value.remove_suffix(1);
  return value;
}

std::string Unquoted(std::string_view value) {
  if (!value.starts_with('"')) return std::string(value);
  if (auto text = JsonText(value)) return *std::move(text);
  return std::string(WithoutQuotes(value));
}

std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  return text;
}

// No letter is cut in two, and what is cut off is not kept.
std::string Shortened(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace

void LogLine::Read(std::string_view line) {
  if (line.find('\x1b') != std::string_view::npos) {
    plain_ = line;
    RemoveColours(plain_);
    line = plain_;
  }
  line = TrimEnd(line);
  if (!ReadObject(line, Layer::kOuter)) ReadText(line);
}

void LogLine::ReadText(std::string_view text) {
  members_.clear();
  message_ = text;
  time_ = FindTime(text);
}

// An object at the end of the line, if it has a message or carries a line.
bool LogLine::ReadObject(std::string_view text, Layer layer) {
  const size_t brace = text.substr(0, kMaxPrefix).find('{');
  if (brace == std::string_view::npos || !text.ends_with('}')) return false;
  members_.clear();
  if (!Gather(text.substr(brace), false)) return false;
  time_ = Stamp();
  if (!time_) time_ = FindTime(text.substr(0, brace));
  for (const std::string_view key : {"message", "msg"}) {
    if (!TakeText(key, said_)) continue;
    message_ = TrimEnd(said_);
    return true;
  }
  if (layer == Layer::kCarried) return false;
  for (const std::string_view key : {"log", "MESSAGE"}) {
    if (!TakeText(key, carried_)) continue;
    ReadCarried(TrimEnd(carried_));
    return true;
  }
  return false;
}

void LogLine::ReadCarried(std::string_view line) {
  const auto when = time_;
  if (!ReadObject(line, Layer::kCarried)) ReadText(line);
  if (!time_) time_ = when;
}

std::optional<LogTime> LogLine::Stamp() const {
  for (const std::string_view key : {"time", "timestamp", "ts"}) {
    const auto value = Member(key);
    if (!value) continue;
    if (const auto time = ReadTime(WithoutQuotes(*value))) return time;
  }
  return std::nullopt;
}

bool LogLine::TakeText(std::string_view key, std::string& out) const {
  const auto raw = Member(key);
  auto text = raw ? JsonText(*raw) : std::nullopt;
  if (!text) return false;
  out = *std::move(text);
  RemoveColours(out);
  return true;
}

// The members of an object that is valid to its end; those of its "fields" stand among them.
bool LogLine::Gather(std::string_view object, bool nested) {
  JsonScanner scanner(object);
  while (true) {
    const auto member = scanner.Next();
    if (!member) return false;
    if (!*member) return true;
    const auto& [key, value] = **member;
    if (!nested && key == "fields" && value.starts_with('{')) Gather(value, true);
    if (members_.size() < kMaxMembers) members_.emplace_back(key, value);
  }
}

std::optional<std::string_view> LogLine::Member(std::string_view key) const {
  for (const auto& [name, value] : members_) {
    if (name == key) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> LogLine::Find(std::string_view key) const {
  const auto member = Member(key);
  return member ? member : FieldIn(message_, key);
}

std::string LogLine::Text(std::string_view key, size_t most) const {
  const auto value = Find(key);
  return value ? Shortened(Unquoted(*value), most) : std::string();
}

std::optional<double> LogLine::Real(std::string_view key) const {
  const auto value = Find(key);
  return value ? ReadReal(WithoutQuotes(*value)) : std::nullopt;
}

std::optional<uint64_t> LogLine::Number(std::string_view key) const {
  const auto real = Real(key);
  if (!real) return std::nullopt;
  return static_cast<uint64_t>(*real);
}

size_t LogLine::MemoryBytes() const {
  return plain_.capacity() + carried_.capacity() + said_.capacity() +
         members_.capacity() * sizeof(members_.front());
}

std::optional<double> RealAfter(std::string_view text, std::string_view label) {
  const size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  return ReadReal(text.substr(at + label.size()));
}

std::optional<uint64_t> NumberAfter(std::string_view text, std::string_view label) {
  const auto real = RealAfter(text, label);
  if (!real) return std::nullopt;
  return static_cast<uint64_t>(*real);
}

uint32_t SizeAfter(std::string_view text, std::string_view label) {
  const auto size = NumberAfter(text, label);
  return size && *size <= kLargestSize ? static_cast<uint32_t>(*size) : 0;
}

}  // namespace fathom
