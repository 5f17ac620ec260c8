#include "diagnose/logs/log_facts.h"

#include <algorithm>
#include <bit>

namespace fathom {

std::optional<double> Tally::PerMinute() const {
  if (!first || *last - *first < std::chrono::seconds(1)) return std::nullopt;
  const std::chrono::duration<double, std::ratio<60>> minutes = *last - *first;
  return static_cast<double>(lines) / minutes.count();
}

void ReuseFacts::Add(std::optional<double> cached, std::optional<uint64_t> tree_size) {
  ++lines;
  if (cached) {
    ++counted;
    cached_blocks += *cached;
    if (*cached == 0) ++none_cached;
    // A part of a block, where a tier counts for less, is something.
    const uint64_t whole = *cached == 0 ? 0 : std::max<uint64_t>(1, static_cast<uint64_t>(*cached));
    ++by_cached[std::min<size_t>(std::bit_width(whole), kBuckets - 1)];
  }
  if (tree_size) {
    ++with_tree_size;
    if (*tree_size == 0) ++tree_empty;
    max_tree_size = std::max(max_tree_size, *tree_size);
  }
}

void EngineFacts::Range::Add(uint64_t value) {
  if (value == 0) return;
  low = low == 0 ? value : std::min(low, value);
  high = std::max(high, value);
}

}  // namespace fathom
