// Words of the sections' tables.
#pragma once

#include <string>
#include <utility>

#include "base/clock.h"
#include "diagnose/findings/report.h"

namespace fathom {

inline Cell Plain(std::string text) { return {std::move(text), Tone::kPlain}; }
inline Cell Faint(std::string text) { return {std::move(text), Tone::kFaint}; }

inline double Milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace fathom
