// Checks of numbers from an engine's page: an impossible value becomes 0, which means unknown.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "engine/engine_report.h"

namespace fathom {

// Larger than any cache, and small enough to be multiplied and added without overflow.
inline constexpr uint64_t kMostTokens = uint64_t{1} << 48;
inline constexpr uint32_t kMostPerBlock = 1 << 20;

inline uint64_t Tokens(std::optional<uint64_t> value) {
  return value && *value <= kMostTokens ? *value : 0;
}

inline uint32_t BlockSize(std::optional<uint64_t> value) {
  return value && *value <= kMostPerBlock ? static_cast<uint32_t>(*value) : 0;
}

// Below the limit at which larger numbers are clamped, and small enough to be multiplied by a block
// size.
inline uint64_t Blocks(std::optional<uint64_t> value) {
  return value && *value < std::numeric_limits<uint32_t>::max() ? *value : 0;
}

inline uint32_t Limit(std::optional<uint64_t> value) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(value.value_or(0), std::numeric_limits<uint32_t>::max()));
}

// Ranks are normally equal; if not, the smallest value is the safe one.
template <class T>
void KeepSmallest(T& kept, T value) {
  if (value > 0 && (kept == 0 || value < kept)) kept = value;
}

// The entry of a rank, created if missing; null for an impossible rank number.
inline RankLoadReport* LoadAt(EngineReport& report, uint64_t rank) {
  if (rank >= EngineReport::kMaxRanks) return nullptr;
  const auto wanted = static_cast<uint32_t>(rank);
  const auto at = std::ranges::lower_bound(report.loads, wanted, {}, &RankLoadReport::rank);
  if (at != report.loads.end() && at->rank == wanted) return &*at;
  return &*report.loads.insert(at, RankLoadReport{.rank = wanted});
}

inline void SetUsage(RankLoadReport& load, double value) {
  if (!std::isnan(value)) load.cache_usage = std::clamp(value, 0.0, 1.0);
}

// If the engine does not report the number of pages.
inline uint64_t SglangPages(const EngineReport& report) {
  return report.block_size > 0 ? report.kv_tokens / report.block_size : 0;
}

}  // namespace fathom
