#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace fathom {
namespace {

// "k8s-pods://" at the front: a letter, then letters, digits and + - . up to ://
bool BeginsWithScheme(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || !letter(text[0])) return false;
  const auto end = std::ranges::find_if_not(text, [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
  return std::string_view(end, text.end()).starts_with("://");
}

constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Length of the well-formed UTF-8 sequence at the front, 0 if there is none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
    if (first == 0xed && byte(1) > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;  // overlong
    if (first == 0xf4 && byte(1) > 0x8f) return 0;  // beyond U+10FFFF
    return 4;
  }
  return 0;
}

// The code point of a well-formed sequence of at most three bytes; 0 for longer ones.
uint32_t ShortCodePoint(std::string_view sequence) {
  constexpr unsigned char kBits[] = {0, 0x7f, 0x1f, 0x0f};
  if (sequence.size() > 3) return 0;
  uint32_t point = static_cast<unsigned char>(sequence[0]) & kBits[sequence.size()];
  for (const char c : sequence.substr(1)) {
    point = (point << 6) | (static_cast<unsigned char>(c) & 0x3f);
  }
  return point;
}

// Control characters (C0, DEL, C1), separators of lines and paragraphs, changes of direction.
bool ChangesTheDisplay(uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point <= 0x9f) || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}

// One sequence of Utf8Length() bytes; a length of 0 is a byte that is not UTF-8.
void AppendHarmless(std::string& out, std::string_view sequence, size_t length) {
  if (length == 0) {
    out += "\\ufffd";
  } else if (const uint32_t point = ShortCodePoint(sequence);
             length < 4 && ChangesTheDisplay(point)) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", point);
  } else {
    out += sequence;
  }
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::vector<std::string_view> SplitAny(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; (at = text.find_first_not_of(separators, at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

std::vector<std::string_view> SplitUrls(std::string_view text) {
  constexpr std::string_view kBetween = ", \t\r\n";
  std::vector<std::string_view> urls;
  const auto add = [&](std::string_view url) {
    const size_t first = url.find_first_not_of(kBetween);
    if (first == std::string_view::npos) return;
    urls.push_back(url.substr(first, url.find_last_not_of(kBetween) + 1 - first));
  };
  size_t from = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    if (!kBetween.contains(text[i - 1]) || !BeginsWithScheme(text.substr(i))) continue;
    add(text.substr(from, i - from));
    from = i;
  }
  add(text.substr(from));
  return urls;
}

std::optional<uint64_t> ParseDecimal(std::string_view text) {
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const uint64_t digit = static_cast<uint64_t>(c - '0');
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const char c = text.front();
    if (length == 1 && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      AppendHarmless(out, text.substr(0, length), length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  out += '"';
}

void AppendHarmlessLines(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (text.front() == '\n') {
      out += '\n';
    } else {
      AppendHarmless(out, text.substr(0, length), length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

std::optional<std::string_view> Nearest(std::string_view name,
                                        std::span<const std::string_view> candidates) {
  std::optional<std::string_view> best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const size_t distance = EditDistance(name, candidate);
    if (distance < std::min(best_distance, candidate.size())) {  // else nothing would match
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

bool EqualsInConstantTime(std::string_view a, std::string_view b) {
  // The length of a key is not secret; its bytes are.
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return *const_cast<volatile unsigned char*>(&difference) == 0;
}

}  // namespace fathom
