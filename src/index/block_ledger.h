// What does one lane hold, by the engine's own names for its blocks?
//
// The engine addresses blocks by hashes that mean nothing here. The ledger keeps, for each hash,
// the block's key, how many copies the engine has, the block before it and how many come after it.
// From the last two it knows whether the lane is unbroken: whether every block that is held has all
// blocks before it.
//
// Ghosts   A block that left while blocks after it stayed remains as a ghost: known, not held. It
//          goes when the last of those goes. A lane without ghosts is unbroken.
// Layout   Records of 20 bytes in an arena of chunks, and a table of hashes in buckets of one cache
//          line: five places, and a count of those that found it full and went on. So a place can
//          be given up without moving others.
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

#include "index/memory_meter.h"

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
    __builtin_prefetch(home + 1, 1);  // which is looked at as well when the home is full
  }
  void PrefetchNode(Node node) const { __builtin_prefetch(&At(node)); }

  uint64_t key(Node node) const { return At(node).key(); }
  uint16_t name_space(Node node) const { return At(node).name_space; }
  bool held(Node node) const { return At(node).copies > 0; }
  bool has_children(Node node) const { return At(node).children > 0; }

  // A new block, held once, or a ghost. The hash must not be known. kNone when memory does not
  // allow it.
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
  // One more copy. True if it was a ghost before.
  bool AddCopy(Node node);
  // Says what comes before a block that was made without knowing it.
  void LinkTo(Node node, Node parent);
  // While held back, a block is not forgotten as a leaf.
  void HoldBack(Node node) { ++At(node).children; }
  void LetGo(Node node) { --At(node).children; }
  // One copy less. What became of the block.
  enum class Left : uint8_t { kCopies, kGhost, kNothing };
  Left RemoveCopy(uint64_t hash, Node node);

  size_t held_blocks() const { return held_; }
  size_t ghosts() const { return ghost_hashes_.size(); }

  // Forgets one held block that nothing follows, whatever its copies: its key, or nothing found.
  struct Victim {
    bool found = false;
    uint64_t key = 0;
  };
  Victim ForgetALeaf();

  // Gives back what a smaller cache does not need. Numbers nodes anew.
  void Trim();

  void ForEachHeld(const std::function<void(uint64_t key)>& visit) const;
  // Sets the flags of the namespaces that its blocks are in.
  void MarkNamespaces(std::vector<bool>& used) const;
  void Reset();

 private:
  // Packed to 20 bytes; a free one uses `parent` to name the next free one.
  struct Record {
    uint32_t key_low;
    uint32_t key_high;
    uint32_t parent;
    uint32_t children;
    uint16_t copies;  // sticks at the largest
    uint16_t name_space;
    uint64_t key() const { return (uint64_t{key_high} << 32) | key_low; }
  };
  static constexpr size_t kPlaces = 5;
  struct alignas(64) Bucket {
    std::array<uint64_t, kPlaces> hashes;  // 0: nothing here
    std::array<Node, kPlaces> nodes;
    uint32_t passed;  // hashes that belong here or before and lie behind
  };
  static_assert(sizeof(Record) == 20 && sizeof(Bucket) == 64);
  static constexpr size_t kChunk = 1024;  // records
  static constexpr size_t kFull = 76;     // load of the table of hashes, in hundredths

  Record& At(Node node) { return chunks_[node / kChunk][node % kChunk]; }
  const Record& At(Node node) const { return chunks_[node / kChunk][node % kChunk]; }
  // Engines may count their hashes up; the secret keeps them from crowding one place on purpose.
  size_t HomeOf(uint64_t hash) const {
    uint64_t mixed = (hash ^ secret_) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93u;
    return static_cast<size_t>(((mixed >> 32) * bucket_count_) >> 32);
  }
  size_t Next(size_t bucket) const { return bucket + 1 == bucket_count_ ? 0 : bucket + 1; }
  size_t room() const { return bucket_count_ * kPlaces; }
  // 0 marks a free place; the block with that hash goes by a name that nobody can guess.
  uint64_t Named(uint64_t hash) const { return hash == 0 ? zero_name_ : hash; }
  // A bit for each place with this hash; 0 finds the free ones. All are compared, because a branch
  // that nobody can predict costs more than five comparisons.
  static uint32_t Matches(const Bucket& bucket, uint64_t hash) {
    uint32_t matches = 0;
    for (uint32_t i = 0; i < kPlaces; ++i) {
      matches |= static_cast<uint32_t>(bucket.hashes[i] == hash) << i;
    }
    return matches;
  }
  // The node, with its bucket in `at`; or kNone.
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
