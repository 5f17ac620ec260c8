#include "index/block_ledger.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace fathom {
namespace {

constexpr size_t kFewestPlaces = 16;
constexpr size_t kGhostBytes = 48;  // what a ghost costs beside its record, about

// Load of the table of hashes, in tenths.
constexpr size_t kFull = 8;
constexpr size_t kCrammed = 9;  // when memory does not allow growing
constexpr size_t kSparse = 4;

}  // namespace

// --- hashes -------------------------------------------------------------------------------------

void BlockLedger::Prefetch(uint64_t hash) const {
  if (places_size_ > 0) __builtin_prefetch(&places_[HomeOf(hash)]);
}

size_t BlockLedger::PlaceOf(uint64_t hash) const {
  size_t i = HomeOf(hash);
  while (places_[i].node != kNone && places_[i].hash() != hash) i = Next(i);
  return i;
}

BlockLedger::Node BlockLedger::Find(uint64_t hash) const {
  if (places_size_ == 0) return kNone;
  return places_[PlaceOf(hash)].node;
}

void BlockLedger::Enter(uint64_t hash, Node node) {
  places_[PlaceOf(hash)] = {static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32), node};
}

// Moves up what a search would no longer find behind the hole.
void BlockLedger::ErasePlace(size_t hole) {
  for (size_t i = Next(hole); places_[i].node != kNone; i = Next(i)) {
    const size_t home = HomeOf(places_[i].hash());
    const bool stays = hole <= i ? (home > hole && home <= i) : (home > hole || home <= i);
    if (stays) continue;
    places_[hole] = places_[i];
    hole = i;
  }
  places_[hole].node = kNone;
}

bool BlockLedger::Rehash(size_t size, bool must) {
  size = std::max(size, kFewestPlaces);
  const size_t bytes = size * sizeof(Place);
  if (must) {
    meter_.Add(bytes);
  } else if (!meter_.TryAdd(bytes)) {
    return false;
  }
  auto old = std::move(places_);
  const size_t old_size = places_size_;
  places_ = std::make_unique_for_overwrite<Place[]>(size);
  places_size_ = size;
  std::fill_n(places_.get(), size, Place{0, 0, kNone});
  for (size_t i = 0; i < old_size; ++i) {
    if (old[i].node != kNone) Enter(old[i].hash(), old[i].node);
  }
  meter_.Subtract(old_size * sizeof(Place));
  return true;
}

// For one more hash.
bool BlockLedger::MakeRoom() {
  if ((known_ + 1) * 10 <= places_size_ * kFull) return true;
  if (Rehash(places_size_ + places_size_ / 4 + 1, false)) return true;
  return (known_ + 1) * 10 <= places_size_ * kCrammed;
}

// --- records ------------------------------------------------------------------------------------

bool BlockLedger::AddChunk(bool must) {
  constexpr size_t kBytes = kChunk * sizeof(Record);
  if (must) {
    meter_.Add(kBytes);
  } else if (!meter_.TryAdd(kBytes)) {
    return false;
  }
  chunks_.push_back(std::make_unique_for_overwrite<Record[]>(kChunk));
  return true;
}

BlockLedger::Node BlockLedger::TakeRecord() {
  if (free_ != kNone) {
    const Node node = free_;
    free_ = At(node).parent;
    return node;
  }
  if (fresh_ == chunks_.size() * kChunk && (fresh_ == kNone - 1 || !AddChunk(false))) return kNone;
  return fresh_++;
}

BlockLedger::Node BlockLedger::Insert(uint64_t hash, uint64_t key, Node parent, uint16_t name_space,
                                      bool ghost) {
  if (!MakeRoom()) return kNone;
  const Node node = TakeRecord();
  if (node == kNone) return kNone;
  At(node) = {static_cast<uint32_t>(key),
              static_cast<uint32_t>(key >> 32),
              parent,
              0,
              static_cast<uint16_t>(ghost ? 0 : 1),
              name_space};
  if (parent != kNone) ++At(parent).children;
  Enter(hash, node);
  ++known_;
  if (ghost) {
    ghost_hashes_.emplace(node, hash);
    meter_.Add(kGhostBytes);
  } else {
    ++held_;
  }
  return node;
}

bool BlockLedger::AddCopy(Node node) {
  Record& record = At(node);
  if (record.copies > 0) {
    if (record.copies < std::numeric_limits<uint16_t>::max()) ++record.copies;
    return false;
  }
  record.copies = 1;
  ++held_;
  ghost_hashes_.erase(node);
  meter_.Subtract(kGhostBytes);
  return true;
}

void BlockLedger::LinkTo(Node node, Node parent) {
  if (parent == kNone || At(node).parent != kNone) return;
  At(node).parent = parent;
  ++At(parent).children;
}

BlockLedger::Left BlockLedger::RemoveCopy(uint64_t hash, Node node) {
  Record& record = At(node);
  if (record.copies == std::numeric_limits<uint16_t>::max()) return Left::kCopies;
  if (--record.copies > 0) return Left::kCopies;
  --held_;
  if (record.children > 0) {
    ghost_hashes_.emplace(node, hash);
    meter_.Add(kGhostBytes);
    return Left::kGhost;
  }
  Release(hash, node);
  if (chunks_.size() > 4 && known_ * 2 < chunks_.size() * kChunk) Compact();
  return Left::kNothing;
}

// Takes out a record that nothing follows, and the ghosts before it that it alone kept.
void BlockLedger::Release(uint64_t hash, Node node) {
  for (;;) {
    ErasePlace(PlaceOf(hash));
    --known_;
    const Node parent = At(node).parent;
    At(node).parent = free_;
    free_ = node;
    if (parent == kNone || --At(parent).children > 0 || At(parent).copies > 0) break;
    const auto ghost = ghost_hashes_.find(parent);
    CHECK(ghost != ghost_hashes_.end());
    hash = ghost->second;
    ghost_hashes_.erase(ghost);
    meter_.Subtract(kGhostBytes);
    node = parent;
  }
  if (known_ * 10 < places_size_ * kSparse && places_size_ > kFewestPlaces) {
    Rehash(known_ * 10 / 7, true);
  }
}

// Gives back the chunks that a smaller cache does not need: numbers every record anew.
void BlockLedger::Compact() {
  std::vector<Node> moved_to(fresh_, kNone);
  auto old = std::move(chunks_);
  const size_t old_chunks = old.size();
  chunks_.clear();
  free_ = kNone;
  fresh_ = 0;
  for (size_t i = 0; i < places_size_; ++i) {
    Place& place = places_[i];
    if (place.node == kNone) continue;
    if (fresh_ == chunks_.size() * kChunk) AddChunk(true);
    At(fresh_) = old[place.node / kChunk][place.node % kChunk];
    moved_to[place.node] = fresh_;
    place.node = fresh_++;
  }
  for (Node node = 0; node < fresh_; ++node) {
    if (At(node).parent != kNone) At(node).parent = moved_to[At(node).parent];
  }
  std::unordered_map<Node, uint64_t> ghosts;
  for (const auto& [node, hash] : ghost_hashes_) ghosts.emplace(moved_to[node], hash);
  ghost_hashes_ = std::move(ghosts);
  meter_.Subtract(old_chunks * kChunk * sizeof(Record));
}

BlockLedger::Victim BlockLedger::ForgetALeaf() {
  if (places_size_ == 0) return {};
  // From another place each time: a hand that sweeps would leave the rest of the table ever fuller.
  size_t at = HomeOf(++picks_);
  for (size_t tries = 0; tries < places_size_; ++tries, at = Next(at)) {
    const Place place = places_[at];
    if (place.node == kNone) continue;
    Record& record = At(place.node);
    if (record.copies == 0 || record.children > 0) continue;
    const Victim victim{true, record.key()};
    record.copies = 0;
    --held_;
    Release(place.hash(), place.node);
    return victim;
  }
  return {};
}

void BlockLedger::ForEachHeld(const std::function<void(uint64_t key)>& visit) const {
  for (size_t i = 0; i < places_size_; ++i) {
    const Node node = places_[i].node;
    if (node != kNone && held(node)) visit(key(node));
  }
}

void BlockLedger::MarkNamespaces(std::vector<bool>& used) const {
  for (size_t i = 0; i < places_size_; ++i) {
    if (places_[i].node != kNone) used[name_space(places_[i].node)] = true;
  }
}

void BlockLedger::Reset() {
  meter_.Subtract(places_size_ * sizeof(Place) + chunks_.size() * kChunk * sizeof(Record) +
                  ghost_hashes_.size() * kGhostBytes);
  places_.reset();
  chunks_.clear();
  ghost_hashes_.clear();
  places_size_ = known_ = held_ = 0;
  free_ = kNone;
  fresh_ = 0;
}

}  // namespace fathom
