#include "diagnose/manifest/program.h"

#include <algorithm>
#include <ranges>

namespace fathom {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](char c) { return c == '_' ? '-' : c; },
      [](char c) { return c == '_' ? '-' : c; });
}

const Written* Last(const std::vector<Written>& settings, auto&& matches) {
  for (const Written& setting : std::views::reverse(settings)) {
    if (matches(setting.name)) return &setting;
  }
  return nullptr;
}

}  // namespace

const Written* Program::Flag(std::string_view flag) const {
  return Last(flags, [&](std::string_view other) { return SameName(other, flag); });
}

const Written* Program::Variable(std::string_view variable) const {
  return Last(variables, [&](std::string_view other) { return other == variable; });
}

const Written* Program::Key(std::string_view dotted) const {
  return Last(keys, [&](std::string_view other) { return SameName(other, dotted); });
}

}  // namespace fathom
