// Which blocks does one lane hold, by the engine's own hashes?
//
// The engine addresses blocks by its own hashes, which the index does not use. For each hash the
// ledger keeps the block's key, the number of copies in the engine, the parent block and the number
// of child blocks. From parent and children it derives whether the lane is unbroken: whether for
// every held block all blocks before it are held too.
//
// Ghosts   A block that was removed while blocks after it stayed remains as a ghost: known, not
//          held. It is deleted with the last block after it. A lane without ghosts is unbroken.
// Layout   Records of 20 bytes in an arena of chunks, and a hash table with buckets of one cache
//          line: five places, and a count of the hashes that overflowed to later buckets. The count
//          lets a place be freed without moving others.
// Memory   About 37 bytes per block. Metered.
// Threads  One.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "router/index/memory_meter.h"

namespace fathom {

class BlockLedger {
 public:
  using Node = uint32_t;
  static constexpr Node kNone = ~Node{0};

  BlockLedger(MemoryMeter& meter, uint64_t secret)
      : meter_(meter), secret_(secret), zero_name_(secret * 0xd1342543de82ef95u | 1) {}
  ~BlockLedger() { Reset(); }
  BlockLedger(BlockLedger&&) = delete;
  BlockLedger& operator=(BlockLedger&&) = delete;

  Node Find(uint64_t hash) const {
    size_t at = 0;
    return bucket_count_ == 0 ? kNone : Look(Named(hash), at);
  }
  void Prefetch(uint64_t hash) const {
    if (bucket_count_ == 0) return;
    const Bucket* const home = &buckets_[HomeOf(Named(hash))];
    __builtin_prefetch(home, 1);
    __builtin_prefetch(home + 1, 1);  // also searched when the home bucket is full
  }
  void PrefetchNode(Node node) const { __builtin_prefetch(&At(node)); }

  uint64_t key(Node node) const { return At(node).key(); }
  uint16_t name_space(Node node) const { return At(node).name_space; }
  bool held(Node node) const { return At(node).copies > 0; }
  bool has_children(Node node) const { return At(node).children > 0; }

  // Adds a block with one copy, or a ghost. The hash must be unknown. kNone: the memory limit is
  // reached.
  Node Insert(uint64_t hash, uint64_t key, Node parent, uint16_t name_space, bool ghost) {
    if ((known_ + 1) * 100 > room() * kFull && !MakeRoom()) return kNone;
    const Node node = TakeRecord();
    if (node == kNone) return kNone;
    At(node) = {static_cast<uint32_t>(key),
                static_cast<uint32_t>(key >> 32),
                parent,
                0,
                static_cast<uint16_t>(ghost ? 0 : 1),
                name_space};
    if (parent != kNone) ++At(parent).children;
    Enter(Named(hash), node);
    ++known_;
    ghost ? KeepGhost(hash, node) : static_cast<void>(++held_);
    return node;
  }
  // Adds a copy. True if the block was a ghost before.
  bool AddCopy(Node node);
  // Sets the parent of a block that was inserted without one.
  void LinkTo(Node node, Node parent);
  // Between HoldBack() and LetGo(), ForgetALeaf() does not choose this block.
  void HoldBack(Node node) { ++At(node).children; }
  void LetGo(Node node) { --At(node).children; }
  // Removes a copy. Returns the remaining state of the block.
  enum class Left : uint8_t { kCopies, kGhost, kNothing };
  Left RemoveCopy(uint64_t hash, Node node);

  size_t held_blocks() const { return held_; }
  size_t ghosts() const { return ghost_hashes_.size(); }

  // Forgets one held block without children, regardless of its copies, and returns its key.
  struct Victim {
    bool found = false;
    uint64_t key = 0;
  };
  Victim ForgetALeaf();

  // Frees memory that is no longer needed. Renumbers the nodes.
  void Trim();

  void ForEachHeld(const std::function<void(uint64_t key)>& visit) const;
  // Sets the flag of each namespace that has blocks here.
  void MarkNamespaces(std::vector<bool>& used) const;
  void Reset();

  // --- for copies (router/index/holding_snapshot.h) ---

  size_t known_blocks() const { return known_; }  // held and ghosts
  // Records are numbered below this; some are free.
  Node records() const { return fresh_; }
  Node parent(Node node) const { return At(node).parent; }
  uint16_t copies(Node node) const { return At(node).copies; }
  size_t buckets() const { return bucket_count_; }
  // Writes the hashes of the blocks in one bucket to the places of their nodes, as substitutes that
  // are never 0, and returns how many.
  size_t NameRecords(size_t bucket, std::vector<uint64_t>& hashes) const {
    size_t named = 0;
    for (size_t i = 0; i < kPlaces; ++i) {
      if (buckets_[bucket].hashes[i] == 0) continue;
      hashes[buckets_[bucket].nodes[i]] = buckets_[bucket].hashes[i];
      ++named;
    }
    return named;
  }
  uint64_t HashOf(uint64_t substitute) const { return substitute == zero_name_ ? 0 : substitute; }
  // Makes room for so many blocks, if memory allows. Only while it is empty.
  void Reserve(size_t blocks);
  // Of a block that was just inserted.
  void SetCopies(Node node, uint16_t copies) { At(node).copies = copies; }
  // Removes ghosts without children: a ledger that was copied in part may have some.
  void DropBareGhosts();

 private:
  // Packed to 20 bytes. In a free record `parent` is the index of the next free one.
  struct Record {
    uint32_t key_low;
    uint32_t key_high;
    uint32_t parent;
    uint32_t children;
    uint16_t copies;  // saturates at the maximum
    uint16_t name_space;
    uint64_t key() const { return (uint64_t{key_high} << 32) | key_low; }
  };
  static constexpr size_t kPlaces = 5;
  struct alignas(64) Bucket {
    std::array<uint64_t, kPlaces> hashes;  // 0: free place
    std::array<Node, kPlaces> nodes;
    uint32_t passed;  // hashes whose home is this or an earlier bucket, stored in a later one
  };
  static_assert(sizeof(Record) == 20 && sizeof(Bucket) == 64);
  static constexpr size_t kChunk = 1024;  // records
  static constexpr size_t kFull = 76;     // maximum load of the hash table, percent

  Record& At(Node node) { return chunks_[node / kChunk][node % kChunk]; }
  const Record& At(Node node) const { return chunks_[node / kChunk][node % kChunk]; }
  // Engine hashes may be consecutive numbers, so they are mixed. The secret prevents hashes chosen
  // to collide in one bucket.
  size_t HomeOf(uint64_t hash) const {
    uint64_t mixed = (hash ^ secret_) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93u;
    return static_cast<size_t>(((mixed >> 32) * bucket_count_) >> 32);
  }
  size_t Next(size_t bucket) const { return bucket + 1 == bucket_count_ ? 0 : bucket + 1; }
  size_t room() const { return bucket_count_ * kPlaces; }
  // 0 marks a free place, so a block whose hash is 0 gets an unpredictable substitute.
  uint64_t Named(uint64_t hash) const { return hash == 0 ? zero_name_ : hash; }
  // A bit for each place with this hash; 0 finds the free ones. All are compared, because one
  // mispredicted branch costs more than five comparisons.
  static uint32_t Matches(const Bucket& bucket, uint64_t hash) {
    uint32_t matches = 0;
    for (uint32_t i = 0; i < kPlaces; ++i) {
      matches |= static_cast<uint32_t>(bucket.hashes[i] == hash) << i;
    }
    return matches;
  }
  // Returns the node and sets `at` to its bucket; or kNone.
  Node Look(uint64_t hash, size_t& at) const {
    at = HomeOf(hash);
    for (size_t looked = 0; looked < bucket_count_; ++looked, at = Next(at)) {
      const Bucket& bucket = buckets_[at];
      const uint32_t matches = Matches(bucket, hash);
      if (matches != 0) return bucket.nodes[static_cast<size_t>(std::countr_zero(matches))];
      if (bucket.passed == 0) break;
    }
    return kNone;
  }

  bool MakeRoom();
  bool Rehash(size_t buckets, bool must);
  void Enter(uint64_t hash, Node node);
  void ErasePlace(uint64_t hash);
  void KeepGhost(uint64_t hash, Node node);
  Node TakeRecord() {
    if (free_ == kNone) return FreshRecord();
    const Node node = free_;
    free_ = At(node).parent;
    return node;
  }
  Node FreshRecord();
  void Release(uint64_t hash, Node node);
  void Compact();
  bool AddChunk(bool must);

  MemoryMeter& meter_;
  const uint64_t secret_;
  const uint64_t zero_name_;
  std::unique_ptr<Bucket[]> buckets_;
  size_t bucket_count_ = 0;
  size_t known_ = 0;  // held and ghosts
  size_t held_ = 0;
  std::vector<std::unique_ptr<Record[]>> chunks_;
  Node free_ = kNone;
  Node fresh_ = 0;  // records from here on were never used
  uint64_t picks_ = 0;
  std::unordered_map<Node, uint64_t> ghost_hashes_;
};

}  // namespace fathom
