#include "router/index/rank_holdings.h"

#include <algorithm>

#include "router/index/prefix_index.h"

namespace fathom {
namespace {

constexpr size_t kBlocksAhead = 8;  // blocks between prefetch and use
constexpr size_t kBatch = 16;       // blocks removed at a time
constexpr size_t kRenew = 256;
constexpr size_t kKeptKeys = 4096;       // room of a rank between two runs
constexpr uint32_t kMostCopies = 65535;  // the ledger counts no further

}  // namespace

RankHoldings::RankHoldings(PrefixIndex& index, uint32_t rank, RankLabel label, Epochs::Seat& seat)
    : index_(index),
      seat_(seat),
      shape_(index.shape()),
      rank_(rank),
      owner_(LostBlocks::OwnerOf(label.worker, label.dp_rank)),
      orphans_(index.meter_, index.secret_),
      unplaced_(index.meter_, index.secret_) {
  ForgetNamespaces();
}

RankHoldings::~RankHoldings() {
  Clear();
  index_.TakeBack(*this);
}

// --- storing ------------------------------------------------------------------------------------

void RankHoldings::Store(const StoredRun& run, TimePoint now) {
  const Epochs::Pin pin(seat_);
  if (run.kind == GroupKind::kUnsupported) {
    NoteUnsupported(run);
  } else if (run.hashes.size() < BlocksOf(run)) {
    PlaceSome(run, now);
  } else if (Place(run, now)) {
    PlaceWaiting(run.hashes, now);
  }
  UpdateCounts();
}

size_t RankHoldings::BlocksOf(const StoredRun& run) const {
  return run.locals.empty() ? shape_.BlocksIn(run.tokens.size()) : run.locals.size();
}

// True if the run's blocks were entered, false if it was parked or rejected.
bool RankHoldings::Place(const StoredRun& run, TimePoint now) {
  // Made even if the run must wait: until then lookups must not ignore that the group exists.
  Lane* const lane = FindOrMake(run);
  const auto origin = OriginOf(run);
  if (!origin || lane == nullptr) {
    counters_.refused.Add(run.hashes.size());
    return false;
  }
  if (!origin->found) {
    counters_.parked.Add(run.hashes.size());
    counters_.lost_orphans.Add(orphans_.Park(run, now));
    return false;
  }
  const size_t entered = Enter(*lane, run, *origin);
  counters_.stored.Add(entered);
  counters_.refused.Add(run.hashes.size() - entered);
  Settle(*lane);
  if (keys_.capacity() > kKeptKeys) keys_ = {};
  return true;
}

// The run names only some of its blocks, and does not show which. The position of a hash among the
// others proves nothing, so each block is placed by what is known about its hash.
void RankHoldings::PlaceSome(const StoredRun& run, TimePoint now) {
  Lane* const lane = FindOrMake(run);
  if (lane == nullptr) {
    counters_.refused.Add(run.hashes.size());
    return;
  }
  size_t done = 0;
  for (const uint64_t hash : run.hashes) {
    if (++done % kRenew == 0) seat_.Renew();
    if (OriginOf(hash, lane).found) {
      PlaceByHash(*lane, hash, 1);
      continue;
    }
    counters_.parked.Add(1);
    counters_.lost_orphans.Add(unplaced_.Park(hash, run.part, now));
  }
  Settle(*lane);
}

// Precondition: a lane knows the hash.
void RankHoldings::PlaceByHash(Lane& lane, uint64_t hash, uint32_t copies) {
  const Origin origin = OriginOf(hash, &lane);
  // The parent is not known. In a tracked lane, lookups must then check for gaps.
  if (lane.tracked() && lane.ledger.Find(hash) == BlockLedger::kNone) {
    lane.irregular = true;
    Announce(lane, false);
  }
  for (uint32_t i = 0; i < std::min(copies, kMostCopies); ++i) {
    BlockLedger::Node before = BlockLedger::kNone;
    const bool entered = EnterBlock(lane, hash, origin.key, before, origin.name_space);
    (entered ? counters_.stored : counters_.refused).Add(1);
  }
}

// Places what waits for these blocks to be known: themselves in other lanes, and runs that follow
// them. Then what waits for the blocks of these runs.
void RankHoldings::PlaceWaiting(std::span<const uint64_t> hashes, TimePoint now) {
  if (orphans_.empty() && unplaced_.empty()) return;
  std::vector<uint64_t> known(hashes.begin(), hashes.end());
  while (!known.empty() && !(orphans_.empty() && unplaced_.empty())) {
    const uint64_t hash = known.back();
    const bool awaited = unplaced_.Contains(hash) || orphans_.Awaits(hash);
    // A run adopted earlier may have removed the block again.
    const bool still = awaited && OriginOf(hash, nullptr).found;
    if (still) PlaceUnplaced(hash);
    const auto orphan = still ? orphans_.Adopt(hash) : std::nullopt;
    if (!orphan) {
      known.pop_back();
      continue;
    }
    if (!Place(orphan->Run(), now)) continue;
    counters_.adopted.Add(orphan->hashes.size());
    known.insert(known.end(), orphan->hashes.begin(), orphan->hashes.end());
    RemoveAll(orphan->left, orphan->part);
  }
}

void RankHoldings::PlaceUnplaced(uint64_t hash) {
  while (const auto block = unplaced_.TakeOut(hash)) {
    Lane* const lane = Find(block->part);  // made when the block was parked
    PlaceByHash(*lane, hash, block->copies);
    counters_.adopted.Add(1);
    Settle(*lane);
  }
}

// nullopt: the run cannot be stored. Not `found`: its parent is unknown.
std::optional<RankHoldings::Origin> RankHoldings::OriginOf(const StoredRun& run) {
  if (run.parent) return OriginOf(*run.parent, Find(run.part));
  const auto name_space = NameSpaceOf(run.seed);
  if (!name_space) return std::nullopt;
  return Origin{true, 0, *name_space};
}

// Engines use one hash for a block in every group and tier, so every lane is searched.
RankHoldings::Origin RankHoldings::OriginOf(uint64_t hash, const Lane* first) const {
  const auto look = [hash](const Lane& lane) -> Origin {
    const BlockLedger::Node node = lane.ledger.Find(hash);
    if (node == BlockLedger::kNone) return {};
    return {true, lane.ledger.key(node), lane.ledger.name_space(node)};
  };
  if (first != nullptr) {
    if (const Origin origin = look(*first); origin.found) return origin;
  }
  for (const auto& lane : lanes_) {
    if (const Origin origin = look(*lane); origin.found) return origin;
  }
  return {};
}

// Fills keys_; returns the number of blocks.
size_t RankHoldings::MakeKeys(const StoredRun& run, const Origin& origin) {
  const bool given = !run.locals.empty();
  const size_t blocks = BlocksOf(run);
  keys_.resize(blocks);
  uint64_t before = origin.key;
  bool first = !run.parent;
  auto extra = run.extra.begin();
  std::vector<uint64_t> extra_keys;
  for (size_t i = 0; i < blocks; ++i) {
    uint64_t local = 0;
    if (given) {
      local = run.locals[i];
    } else {
      extra_keys.clear();
      for (; extra != run.extra.end() && extra->block <= i; ++extra) {
        extra_keys.push_back(extra->key);
      }
      local = LocalHash(shape_.Block(run.tokens, i), extra_keys, seeds_[origin.name_space]);
    }
    before = first ? local : ChainKey(before, local);
    first = false;
    keys_[i] = before;
  }
  return blocks;
}

// The run names all of its blocks. Returns how many were entered.
size_t RankHoldings::Enter(Lane& lane, const StoredRun& run, const Origin& origin) {
  const size_t count = run.hashes.size();
  if (MakeKeys(run, origin) != count) return 0;  // more hashes than blocks
  const auto prefetch = [&](size_t i) {
    lane.ledger.Prefetch(run.hashes[i]);
    bank_->table.Prefetch(keys_[i]);
  };
  for (size_t i = 0; i < std::min(count, kBlocksAhead); ++i) prefetch(i);
  BlockLedger::Node before = NodeBefore(lane, run, origin);
  for (size_t i = 0; i < count; ++i) {
    if (i + kBlocksAhead < count) prefetch(i + kBlocksAhead);
    if (!EnterBlock(lane, run.hashes[i], keys_[i], before, origin.name_space)) return i;
    if (i % kRenew == 0) seat_.Renew();  // lets replaced arrays be freed
  }
  return count;
}

// The parent, in this lane, of the run's first block.
BlockLedger::Node RankHoldings::NodeBefore(Lane& lane, const StoredRun& run, const Origin& origin) {
  if (!lane.tracked() || !run.parent) return BlockLedger::kNone;
  const BlockLedger::Node known = lane.ledger.Find(*run.parent);
  if (known != BlockLedger::kNone) return known;
  // The parent is held in another tier or group only: in this lane it is a gap.
  Announce(lane, false);
  return lane.ledger.Insert(*run.parent, origin.key, BlockLedger::kNone, origin.name_space, true);
}

// False when there is no memory for the block even after forgetting others, or when its key
// contradicts an earlier event. The blocks after it cannot be entered then.
bool RankHoldings::EnterBlock(Lane& lane, uint64_t hash, uint64_t key, BlockLedger::Node& before,
                              uint16_t name_space) {
  const BlockLedger::Node known = lane.ledger.Find(hash);
  if (known != BlockLedger::kNone) return EnterKnown(lane, known, key, before);
  for (;;) {
    if (bank_->table.Set(key, lane.bit)) {
      const BlockLedger::Node made = lane.ledger.Insert(hash, key, before, name_space, false);
      if (made != BlockLedger::kNone) {
        if (lane.tracked()) before = made;
        return true;
      }
      bank_->table.Clear(key, lane.bit);
    }
    // The parent of the new block must not be forgotten.
    if (before != BlockLedger::kNone) lane.ledger.HoldBack(before);
    const size_t forgotten = ForgetLeaves(64);
    if (before != BlockLedger::kNone) lane.ledger.LetGo(before);
    if (forgotten == 0) return false;
  }
}

bool RankHoldings::EnterKnown(Lane& lane, BlockLedger::Node known, uint64_t key,
                              BlockLedger::Node& before) {
  if (lane.ledger.key(known) != key) {
    counters_.conflicts.Add(1);
    return false;
  }
  if (!lane.ledger.held(known)) {
    if (!bank_->table.Set(key, lane.bit)) return false;
  } else {
    counters_.copies.Add(1);
  }
  lane.ledger.AddCopy(known);
  lane.ledger.LinkTo(known, before);
  if (lane.tracked()) before = known;
  return true;
}

// --- removing -----------------------------------------------------------------------------------

void RankHoldings::Remove(std::span<const uint64_t> hashes, CachePart part) {
  const Epochs::Pin pin(seat_);
  RemoveAll(hashes, part);
  UpdateCounts();
}

void RankHoldings::RemoveAll(std::span<const uint64_t> hashes, CachePart part) {
  Lane* const lane = Find(part);
  if (lane == nullptr) {
    counters_.unknown_removed.Add(hashes.size());  // a part whose blocks wait has a lane
    return;
  }
  // Some engines list parents before their children. Removing such a list backwards avoids a
  // temporary gap.
  const BlockLedger::Node first =
      hashes.empty() ? BlockLedger::kNone : lane->ledger.Find(hashes[0]);
  const bool backwards = first != BlockLedger::kNone && lane->ledger.has_children(first);
  for (size_t done = 0; done < hashes.size(); done += kBatch) {
    const size_t count = std::min(kBatch, hashes.size() - done);
    const size_t begin = backwards ? hashes.size() - done - count : done;
    RemoveSome(*lane, hashes.subspan(begin, count), backwards);
  }
  lane->ledger.Trim();
  Settle(*lane);
}

// Each pass prefetches the memory that the next one needs.
void RankHoldings::RemoveSome(Lane& lane, std::span<const uint64_t> hashes, bool backwards) {
  const BlockLedger& ledger = lane.ledger;
  for (const uint64_t hash : hashes) ledger.Prefetch(hash);
  std::array<BlockLedger::Node, kBatch> nodes;
  for (size_t i = 0; i < hashes.size(); ++i) {
    nodes[i] = ledger.Find(hashes[i]);
    if (nodes[i] != BlockLedger::kNone) ledger.PrefetchNode(nodes[i]);
  }
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (nodes[i] != BlockLedger::kNone) bank_->table.Prefetch(ledger.key(nodes[i]));
  }
  for (size_t i = 0; i < hashes.size(); ++i) {
    const size_t at = backwards ? hashes.size() - 1 - i : i;
    RemoveBlock(lane, hashes[at], nodes[at]);
  }
}

void RankHoldings::RemoveBlock(Lane& lane, uint64_t hash, BlockLedger::Node node) {
  // A node that was released since the lookup is not held, and its record has not been reused yet.
  if (node == BlockLedger::kNone || !lane.ledger.held(node)) {
    const bool waited = unplaced_.Remove(hash, lane.part) || orphans_.Remove(hash, lane.part);
    if (!waited) counters_.unknown_removed.Add(1);
    return;
  }
  counters_.removed.Add(1);
  const uint64_t key = lane.ledger.key(node);
  if (lane.ledger.has_children(node)) Announce(lane, false);
  if (lane.ledger.RemoveCopy(hash, node) != BlockLedger::Left::kCopies) {
    bank_->table.Clear(key, lane.bit);
    Lose(lane, key, LostHow::kEvicted);
  }
}

// A block may be in several lanes; only its loss from the full-attention device lane is recorded.
void RankHoldings::Lose(const Lane& lane, uint64_t key, LostHow how) const {
  if (index_.lost_ != nullptr && lane.tracked()) index_.lost_->Add(key, how, owner_);
}

std::optional<uint64_t> RankHoldings::KeyOf(uint64_t hash) const {
  const Origin origin = OriginOf(hash, nullptr);
  return origin.found ? std::optional(origin.key) : std::nullopt;
}

void RankHoldings::Move(uint64_t hash, CachePart from, Tier to) {
  const Epochs::Pin pin(seat_);
  const Lane* const source = Find(from);
  const BlockLedger::Node node = source == nullptr ? BlockLedger::kNone : source->ledger.Find(hash);
  if (node == BlockLedger::kNone || !source->ledger.held(node) || from.tier == to) {
    counters_.unknown_removed.Add(1);
    return;
  }
  const uint64_t key = source->ledger.key(node);
  const StoredRun shape{.part = {to, from.group}, .kind = source->kind, .window = source->window};
  if (Lane* const target = FindOrMake(shape); target != nullptr) {
    // A move event does not name the parent. In a tracked lane, lookups must then check for gaps.
    if (target->tracked() && target->ledger.Find(hash) == BlockLedger::kNone) {
      target->irregular = true;
      Announce(*target, false);
    }
    BlockLedger::Node before = BlockLedger::kNone;
    EnterBlock(*target, hash, key, before, source->ledger.name_space(node));
    Settle(*target);
  }
  RemoveAll(std::span(&hash, 1), from);
  UpdateCounts();
}

void RankHoldings::Clear() {
  const Epochs::Pin pin(seat_);
  for (const auto& lane : lanes_) {
    lane->ledger.ForEachHeld([&](uint64_t key) {
      bank_->table.Clear(key, lane->bit);
      Lose(*lane, key, LostHow::kGone);
    });
    counters_.removed.Add(lane->ledger.held_blocks());
    lane->ledger.Reset();
    lane->irregular = false;
    Settle(*lane);
  }
  counters_.clears.Add(1);
  orphans_.Clear();
  unplaced_.Clear();
  ForgetNamespaces();
  UpdateCounts();
}

void RankHoldings::ExpireOrphans(TimePoint now) {
  counters_.lost_orphans.Add(orphans_.Expire(now) + unplaced_.Expire(now));
  UpdateCounts();
}

// Forgets blocks of the largest lane. Returns how many.
size_t RankHoldings::ForgetLeaves(size_t blocks) {
  const auto largest = std::ranges::max_element(
      lanes_, {}, [](const auto& lane) { return lane->ledger.held_blocks(); });
  if (largest == lanes_.end()) return 0;
  size_t forgotten = 0;
  for (; forgotten < blocks; ++forgotten) {
    const BlockLedger::Victim victim = (*largest)->ledger.ForgetALeaf();
    if (!victim.found) break;
    bank_->table.Clear(victim.key, (*largest)->bit);
    Lose(**largest, victim.key, LostHow::kForgotten);
  }
  counters_.evicted.Add(forgotten);
  return forgotten;
}

}  // namespace fathom
