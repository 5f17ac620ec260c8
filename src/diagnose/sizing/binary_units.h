// How many bytes are a MiB and a GiB? As numbers with fractions, because sizes are divided by them.
#pragma once

namespace fathom {

inline constexpr double kMiB = 1 << 20;
inline constexpr double kGiB = 1 << 30;

}  // namespace fathom
