#include "engine/engine_report.h"

#include <limits>

namespace fathom {
namespace {

uint32_t AddUpTo32Bits(uint32_t a, uint32_t b) {
  return a > std::numeric_limits<uint32_t>::max() - b ? std::numeric_limits<uint32_t>::max()
                                                      : a + b;
}

}  // namespace

std::optional<RankLoadReport> EngineReport::TotalLoad() const {
  if (loads.empty()) return std::nullopt;
  RankLoadReport total;
  for (const RankLoadReport& load : loads) {
    total.running = AddUpTo32Bits(total.running, load.running);
    total.waiting = AddUpTo32Bits(total.waiting, load.waiting);
    total.cache_usage += load.cache_usage;
  }
  total.cache_usage /= static_cast<double>(loads.size());
  return total;
}

}  // namespace fathom
