// Numbers that an engine's page may say anything for: what makes no sense becomes 0, not known.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "fleet/engine_report.h"

namespace fathom {

// Larger than any cache, small enough to be multiplied and added without a thought.
inline constexpr uint64_t kMostTokens = uint64_t{1} << 48;
inline constexpr uint32_t kMostPerBlock = 1 << 20;

inline uint64_t Tokens(std::optional<uint64_t> value) {
  return value && *value <= kMostTokens ? *value : 0;
}

inline uint32_t BlockSize(std::optional<uint64_t> value) {
  return value && *value <= kMostPerBlock ? static_cast<uint32_t>(*value) : 0;
}

// Less than what a larger number is cut off at, and small enough to be multiplied with the size of
// a block.
inline uint64_t Blocks(std::optional<uint64_t> value) {
  return value && *value < std::numeric_limits<uint32_t>::max() ? *value : 0;
}

inline uint32_t Limit(std::optional<uint64_t> value) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(value.value_or(0), std::numeric_limits<uint32_t>::max()));
}

// Ranks are alike; where they are not, the smallest is the one to reckon with.
template <class T>
void KeepSmallest(T& kept, T value) {
  if (value > 0 && (kept == 0 || value < kept)) kept = value;
}

// The entry of a rank, made if there is none; null for a rank that cannot be.
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

// Where nobody counts them.
inline uint64_t SglangPages(const EngineReport& report) {
  return report.block_size > 0 ? report.kv_tokens / report.block_size : 0;
}

}  // namespace fathom
