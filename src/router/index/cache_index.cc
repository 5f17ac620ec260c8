#include "router/index/cache_index.h"

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
  auto* const made = new PrefixIndex(shape, epochs_, meter_, secret_ + count, lost_.get());
  if (lost_) lost_->AddShape(shape);
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
  for (const auto& keys : others_) keys->made = 0;
  for (size_t i = 0; i < index_.shapes(); ++i) {
    const PrefixIndex& index = index_.at(i);
    if (i == cohorts_.size()) cohorts_.push_back(std::make_unique<Cohort>(index));
    Cohort& cohort = *cohorts_[i];
    cohort.keys.made = cohort.keys.deepest = 0;
    if (index.ranks() == 0) continue;  // no rank uses this shape any more
    const BlockShape shape = index.shape();
    KeyChain keys = cohort.keys.Chain(tokens, seed, known);
    const size_t most = shape.MostCached(tokens.size());
    const std::span<const Depth> depths = cohort.reader.Match(keys);
    cohort.keys.made = keys.made();
    for (uint32_t rank = 0; rank < depths.size(); ++rank) {
      const auto label = index.Label(rank);
      if (!label) continue;
      Found found{.rank = *label, .block_size = shape.size, .pairs = shape.pairs};
      cohort.keys.deepest = std::max<size_t>(cohort.keys.deepest, depths[rank].blocks[kTiers - 1]);
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
    // A lookup computes only the keys it needs; the next prompt may need the others.
    const auto all = cohort.keys.Chain(tokens, seed, {}).All();
    cohort.keys.made = all.size();
    keys.chains.push_back({index.shape(), {all.begin(), all.end()}});
  }
}

// --- lost blocks ---------------------------------------------------------------------------------

KeyChain CacheReader::Keys::Chain(std::span<const TokenId> tokens, uint64_t seed,
                                  const KnownPrefix& known) {
  const std::span<const uint64_t> earlier = known.Chain(shape);
  const std::span<const uint64_t> ours = std::span(storage).first(made);
  return KeyChain(tokens, shape, seed, storage, earlier.size() > made ? earlier : ours);
}

CacheReader::Keys& CacheReader::KeysFor(BlockShape shape) {
  for (const auto& cohort : cohorts_) {
    if (cohort->keys.shape == shape) return cohort->keys;
  }
  for (const auto& keys : others_) {
    if (keys->shape == shape) return *keys;
  }
  others_.push_back(std::make_unique<Keys>(Keys{.shape = shape}));
  return *others_.back();
}

// A lost prefix was contiguous once, so its end can be found by search.
CacheReader::Lost CacheReader::FindLost(std::span<const TokenId> tokens, uint64_t seed,
                                        const KnownPrefix& known) {
  Lost lost;
  if (index_.lost() == nullptr) return lost;
  const LostBlocks& blocks = *index_.lost();
  for (size_t i = 0; i < LostBlocks::kMostShapes; ++i) {
    const BlockShape shape = blocks.shape(i);
    if (shape.size == 0) break;
    Keys& keys = KeysFor(shape);
    KeyChain chain = keys.Chain(tokens, seed, known);
    const size_t most = shape.MostCached(tokens.size()) / shape.size;
    size_t end = keys.deepest;  // lost up to here
    std::optional<LostBlocks::Loss> last;
    const auto reaches = [&](size_t block) {
      const auto found = blocks.Find(chain.At(block));
      if (found) last = found, end = block + 1;
      return found.has_value();
    };
    size_t step = 1;
    while (end + step <= most && reaches(end + step - 1)) step *= 2;
    for (; step > 0; step /= 2) {
      if (end + step <= most) reaches(end + step - 1);
    }
    keys.made = chain.made();
    if (last && end * shape.size > lost.tokens) lost = {end * shape.size, *last};
  }
  return lost;
}

std::span<const uint64_t> CacheReader::KeysOf(std::span<const TokenId> tokens, uint64_t seed,
                                              BlockShape shape, size_t from,
                                              const KnownPrefix& known) {
  Keys& keys = KeysFor(shape);
  const auto all = keys.Chain(tokens, seed, known).All();
  keys.made = all.size();
  return all.subspan(std::min(from, all.size()));
}

}  // namespace fathom
