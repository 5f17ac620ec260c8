#include "diagnose/manifest/setting_lookup.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "base/text.h"

namespace fathom {
namespace {

bool IsVariable(std::string_view name) {
  return std::ranges::none_of(name,
                              [](unsigned char c) { return std::islower(c) != 0 || c == '.'; });
}

std::optional<uint64_t> FactorOf(char suffix) {
  constexpr uint64_t kKilo = 1000;
  constexpr uint64_t kKibi = 1024;
  switch (suffix) {
    case 'k':
      return kKilo;
    case 'K':
      return kKibi;
    case 'm':
      return kKilo * kKilo;
    case 'M':
      return kKibi * kKibi;
    case 'g':
      return kKilo * kKilo * kKilo;
    case 'G':
      return kKibi * kKibi * kKibi;
    default:
      return std::nullopt;
  }
}

}  // namespace

const Written* FirstWritten(const Program& program, SettingNames names) {
  for (const std::string_view name : names) {
    const Written* written = name.starts_with('-') ? program.Flag(name)
                             : IsVariable(name)    ? program.Variable(name)
                                                   : program.Key(name);
    if (written != nullptr) return written;
  }
  return nullptr;
}

std::optional<bool> AsSwitch(std::string_view text) {
  constexpr std::string_view kOn[] = {"", "true", "on", "yes", "1"};
  constexpr std::string_view kOff[] = {"false", "off", "no", "0"};
  const auto same = [&](std::string_view word) { return EqualsIgnoreCase(word, text); };
  if (std::ranges::any_of(kOn, same)) return true;
  if (std::ranges::any_of(kOff, same)) return false;
  return std::nullopt;
}

std::optional<uint64_t> AsCount(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto factor = FactorOf(text.back());
  if (factor) text.remove_suffix(1);
  const auto number = ParseDecimal(text);
  if (!number || !factor) return number;
  if (*number > std::numeric_limits<uint64_t>::max() / *factor) return std::nullopt;
  return *number * *factor;
}

std::optional<double> AsNumber(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Setting<uint64_t> CountOf(const Program& program, SettingNames names,
                          std::optional<uint64_t> otherwise) {
  const Written* written = FirstWritten(program, names);
  if (written == nullptr) return {otherwise, std::nullopt};
  return {AsCount(written->value), *written};
}

Setting<double> NumberOf(const Program& program, SettingNames names,
                         std::optional<double> otherwise) {
  const Written* written = FirstWritten(program, names);
  if (written == nullptr) return {otherwise, std::nullopt};
  return {AsNumber(written->value), *written};
}

Setting<std::string> TextOf(const Program& program, SettingNames names,
                            std::optional<std::string> otherwise) {
  const Written* written = FirstWritten(program, names);
  if (written == nullptr) return {std::move(otherwise), std::nullopt};
  // Empty without a place of its own: it comes from elsewhere.
  if (written->value.empty() && !written->span) return {std::nullopt, *written};
  return {written->value, *written};
}

}  // namespace fathom
