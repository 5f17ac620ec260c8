// How is text for a terminal coloured, and how wide may it be?
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "diagnose/findings/report.h"

namespace fathom {

struct TextStyle {
  bool color = false;
  size_t width = 100;
};

enum class Ink : uint8_t { kPlain, kStrong, kFaint, kRed, kYellow, kGreen, kBlue };

Ink InkOf(Tone tone);
Ink InkOf(Severity severity);

// The text as it is where there is no colour.
std::string Paint(std::string_view text, Ink ink, const TextStyle& style);

}  // namespace fathom
