#include "index/cache_index.h"

#include <algorithm>

namespace fathom {

CacheIndex::~CacheIndex() {
  for (size_t i = 0; i < shapes(); ++i) delete indexes_[i].load(std::memory_order_acquire);
}

PrefixIndex* CacheIndex::Find(BlockShape shape) {
  const size_t count = count_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    PrefixIndex* const index = indexes_[i].load(std::memory_order_relaxed);
    if (index->shape() == shape) return index;
  }
  if (count == kMostShapes || shape.size == 0) return nullptr;
  auto* const made = new PrefixIndex(shape, epochs_, meter_, secret_ + count);
  indexes_[count].store(made, std::memory_order_release);
  count_.store(count + 1, std::memory_order_release);
  return made;
}

std::unique_ptr<RankHoldings> CacheIndex::Open(RankLabel label, BlockShape shape,
                                               Epochs::Seat& seat) {
  const std::lock_guard lock(mutex_);
  PrefixIndex* const index = Find(shape);
  return index == nullptr ? nullptr : index->AddRank(label, seat);
}

size_t CacheIndex::held() const {
  size_t held = 0;
  for (size_t i = 0; i < shapes(); ++i) held += at(i).held();
  return held;
}

std::span<const CacheReader::Found> CacheReader::Match(std::span<const TokenId> tokens,
                                                       uint64_t seed, const KnownPrefix& known) {
  found_.clear();
  for (size_t i = 0; i < index_.shapes(); ++i) {
    const PrefixIndex& index = index_.at(i);
    if (i == cohorts_.size()) cohorts_.push_back(std::make_unique<Cohort>(index));
    Cohort& cohort = *cohorts_[i];
    cohort.made = 0;
    if (index.ranks() == 0) continue;  // nobody has blocks of that shape any more
    const BlockShape shape = index.shape();
    KeyChain keys(tokens, shape, seed, cohort.keys, known.Chain(shape));
    const size_t most = shape.MostCached(tokens.size());
    const std::span<const Depth> depths = cohort.reader.Match(keys);
    cohort.made = keys.made();
    for (uint32_t rank = 0; rank < depths.size(); ++rank) {
      const auto label = index.Label(rank);
      if (!label) continue;
      Found found{.rank = *label, .block_size = shape.size};
      found.held = uint64_t{index.held(rank)} * shape.size;
      for (size_t tier = 0; tier < kTiers; ++tier) {
        found.tokens[tier] = std::min<size_t>(size_t{depths[rank].blocks[tier]} * shape.size, most);
      }
      found_.push_back(found);
    }
  }
  return found_;
}

void CacheReader::Keep(std::span<const TokenId> tokens, uint64_t seed, PrefixKeys& keys) {
  for (size_t i = 0; i < cohorts_.size(); ++i) {
    Cohort& cohort = *cohorts_[i];
    const PrefixIndex& index = index_.at(i);
    if (index.ranks() == 0) continue;
    // A lookup makes no more than it needs; the next prompt may need the rest.
    KeyChain chain(tokens, index.shape(), seed, cohort.keys,
                   std::span(cohort.keys).first(cohort.made));
    const auto all = chain.All();
    keys.chains.push_back({index.shape(), {all.begin(), all.end()}});
  }
}

}  // namespace fathom
