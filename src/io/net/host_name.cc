#include "io/net/host_name.h"

#include <algorithm>

namespace fathom {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool IsLabelByte(char c) {
  return (Lower(c) >= 'a' && Lower(c) <= 'z') || IsDigit(c) || c == '-' || c == '_';
}

bool IsLabel(std::string_view label) {
  constexpr size_t kLongestLabel = 63;
  return !label.empty() && label.size() <= kLongestLabel && std::ranges::all_of(label, IsLabelByte);
}

bool LooksLikeIpv4(std::string_view text) {
  return text.find('.') != text.npos &&
         std::ranges::all_of(text, [](char c) { return IsDigit(c) || c == '.'; });
}

}  // namespace

bool IsHostName(std::string_view text) {
  constexpr size_t kLongestName = 253;
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.size() > kLongestName || LooksLikeIpv4(text)) return false;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    if (!IsLabel(text.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

bool IsLocalhost(std::string_view name) {
  const std::string lower = LowerHostName(name);
  std::string_view text = lower;
  if (text.ends_with('.')) text.remove_suffix(1);
  return text == "localhost" || text.ends_with(".localhost");
}

std::string LowerHostName(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), Lower);
  return lower;
}

}  // namespace fathom
