#include "router/index/block_ledger.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace fathom {
namespace {

constexpr size_t kFewestBuckets = 4;
constexpr size_t kGhostBytes = 48;  // approximate cost of a ghost beyond its record

// Load of the hash table, percent.
constexpr size_t kSparse = 35;
constexpr size_t kRoomy = 65;

}  // namespace

// --- hashes -------------------------------------------------------------------------------------

// Requires a free place in the table.
void BlockLedger::Enter(uint64_t hash, Node node) {
  for (size_t at = HomeOf(hash);; at = Next(at)) {
    Bucket& bucket = buckets_[at];
    if (const uint32_t free = Matches(bucket, 0); free != 0) {
      const auto i = static_cast<size_t>(std::countr_zero(free));
      bucket.hashes[i] = hash;
      bucket.nodes[i] = node;
      return;
    }
    ++bucket.passed;
  }
}

// Requires the hash to be in the table.
void BlockLedger::ErasePlace(uint64_t hash) {
  for (size_t at = HomeOf(hash);; at = Next(at)) {
    Bucket& bucket = buckets_[at];
    if (const uint32_t matches = Matches(bucket, hash); matches != 0) {
      bucket.hashes[static_cast<size_t>(std::countr_zero(matches))] = 0;
      return;
    }
    --bucket.passed;
  }
}

bool BlockLedger::Rehash(size_t buckets, bool must) {
  buckets = std::max(buckets, kFewestBuckets);
  const size_t bytes = buckets * sizeof(Bucket);
  if (must) {
    meter_.Add(bytes);
  } else if (!meter_.TryAdd(bytes)) {
    return false;
  }
  const auto old = std::move(buckets_);
  const size_t old_count = bucket_count_;
  buckets_ = std::make_unique<Bucket[]>(buckets);
  bucket_count_ = buckets;
  for (size_t at = 0; at < old_count; ++at) {
    for (size_t i = 0; i < kPlaces; ++i) {
      if (old[at].hashes[i] != 0) Enter(old[at].hashes[i], old[at].nodes[i]);
    }
  }
  meter_.Subtract(old_count * sizeof(Bucket));
  return true;
}

bool BlockLedger::MakeRoom() { return Rehash(bucket_count_ + bucket_count_ / 4 + 1, false); }

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

BlockLedger::Node BlockLedger::FreshRecord() {
  if (fresh_ == chunks_.size() * kChunk && (fresh_ == kNone - 1 || !AddChunk(false))) return kNone;
  return fresh_++;
}

void BlockLedger::KeepGhost(uint64_t hash, Node node) {
  ghost_hashes_.emplace(node, hash);
  meter_.Add(kGhostBytes);
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
    KeepGhost(hash, node);
    return Left::kGhost;
  }
  Release(hash, node);
  return Left::kNothing;
}

// Removes a record without children, and the ghosts before it that had no other child.
void BlockLedger::Release(uint64_t hash, Node node) {
  for (;;) {
    ErasePlace(Named(hash));
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
}

void BlockLedger::Trim() {
  if (bucket_count_ > kFewestBuckets && known_ * 100 < room() * kSparse) {
    Rehash(known_ * 100 / kRoomy / kPlaces + 1, true);
  }
  if (chunks_.size() > 1 && known_ * 2 < (chunks_.size() - 1) * kChunk) Compact();
}

// Frees chunks that are no longer needed by renumbering every record.
void BlockLedger::Compact() {
  std::vector<Node> moved_to(fresh_, kNone);
  auto old = std::move(chunks_);
  const size_t old_chunks = old.size();
  chunks_.clear();
  free_ = kNone;
  fresh_ = 0;
  for (size_t at = 0; at < bucket_count_; ++at) {
    for (size_t i = 0; i < kPlaces; ++i) {
      if (buckets_[at].hashes[i] == 0) continue;
      if (fresh_ == chunks_.size() * kChunk) AddChunk(true);
      Node& node = buckets_[at].nodes[i];
      At(fresh_) = old[node / kChunk][node % kChunk];
      moved_to[node] = fresh_;
      node = fresh_++;
    }
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
  if (bucket_count_ == 0) return {};
  // Starts at a different bucket each time: a linear sweep would empty one part of the table while
  // the rest keeps filling.
  size_t at = HomeOf(++picks_);
  for (size_t tries = 0; tries < bucket_count_; ++tries, at = Next(at)) {
    for (size_t i = 0; i < kPlaces; ++i) {
      if (buckets_[at].hashes[i] == 0) continue;
      Record& record = At(buckets_[at].nodes[i]);
      if (record.copies == 0 || record.children > 0) continue;
      const Victim victim{true, record.key()};
      record.copies = 0;
      --held_;
      Release(buckets_[at].hashes[i], buckets_[at].nodes[i]);
      return victim;
    }
  }
  return {};
}

void BlockLedger::ForEachHeld(const std::function<void(uint64_t key)>& visit) const {
  for (size_t i = 0; i < bucket_count_; ++i) {
    for (size_t j = 0; j < kPlaces; ++j) {
      const Node node = buckets_[i].nodes[j];
      if (buckets_[i].hashes[j] != 0 && held(node)) visit(key(node));
    }
  }
}

void BlockLedger::MarkNamespaces(std::vector<bool>& used) const {
  for (size_t i = 0; i < bucket_count_; ++i) {
    for (size_t j = 0; j < kPlaces; ++j) {
      if (buckets_[i].hashes[j] != 0) used[name_space(buckets_[i].nodes[j])] = true;
    }
  }
}

// --- copies -------------------------------------------------------------------------------------

void BlockLedger::Reserve(size_t blocks) {
  const size_t buckets = blocks * 100 / kRoomy / kPlaces + 1;
  if (known_ == 0 && buckets > bucket_count_) Rehash(buckets, false);
}

void BlockLedger::DropBareGhosts() {
  std::vector<std::pair<uint64_t, Node>> bare;
  for (const auto& [node, hash] : ghost_hashes_) {
    if (At(node).children == 0) bare.emplace_back(hash, node);
  }
  for (const auto& [hash, node] : bare) {
    ghost_hashes_.erase(node);
    meter_.Subtract(kGhostBytes);
    Release(hash, node);
  }
}

void BlockLedger::Reset() {
  meter_.Subtract(bucket_count_ * sizeof(Bucket) + chunks_.size() * kChunk * sizeof(Record) +
                  ghost_hashes_.size() * kGhostBytes);
  buckets_.reset();
  chunks_.clear();
  ghost_hashes_.clear();
  bucket_count_ = known_ = held_ = 0;
  free_ = kNone;
  fresh_ = 0;
}

}  // namespace fathom
