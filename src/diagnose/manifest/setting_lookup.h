// What has a program written for one of several names, and what does that mean?
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "diagnose/manifest/program.h"
#include "diagnose/manifest/written.h"

namespace fathom {

using SettingNames = std::initializer_list<std::string_view>;

// By the first of these names that is there: "--flag" and "-f" are flags, "NAME" is a variable, the
// rest are keys.
const Written* FirstWritten(const Program& program, SettingNames names);

// true, on, yes, 1 and their opposites; an empty text is a bare switch, which is on.
std::optional<bool> AsSwitch(std::string_view text);
// 32, 32k (thousands), 32K (times 1024), and the same for m and g.
std::optional<uint64_t> AsCount(std::string_view text);
std::optional<double> AsNumber(std::string_view text);

Setting<uint64_t> CountOf(const Program& program, SettingNames names,
                          std::optional<uint64_t> otherwise = std::nullopt);
Setting<double> NumberOf(const Program& program, SettingNames names,
                         std::optional<double> otherwise = std::nullopt);
Setting<std::string> TextOf(const Program& program, SettingNames names,
                            std::optional<std::string> otherwise = std::nullopt);

template <class Number>
Setting<Number> Narrowed(const Setting<uint64_t>& count) {
  Setting<Number> narrow{std::nullopt, count.written};
  if (count.value && std::in_range<Number>(*count.value)) {
    narrow.value = static_cast<Number>(*count.value);
  }
  return narrow;
}

}  // namespace fathom
