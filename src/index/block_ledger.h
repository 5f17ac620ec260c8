// What does one lane hold, by the engine's own names for its blocks?
//
// The engine addresses blocks by hashes that mean nothing here. The ledger keeps, for each hash,
// the block's key, how many copies the engine has, the block before it and how many come after it.
// From the last two it knows whether the lane is unbroken: whether every block that is held has all
// blocks before it.
//
// Ghosts   A block that left while blocks after it stayed remains as a ghost: known, not held. It
//          goes when the last of those goes. A lane without ghosts is unbroken.
// Memory   20 bytes per block in an arena of chunks, 12 bytes per place in an open-addressed table
//          of hashes with a load between 0.64 and 0.8: about 37 in all. Metered.
// Threads  One.
#pragma once

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

  BlockLedger(MemoryMeter& meter, uint64_t secret) : meter_(meter), secret_(secret) {}
  ~BlockLedger() { Reset(); }
  BlockLedger(BlockLedger&&) = delete;
  BlockLedger& operator=(BlockLedger&&) = delete;

  Node Find(uint64_t hash) const;
  void Prefetch(uint64_t hash) const;

  uint64_t key(Node node) const { return At(node).key(); }
  uint16_t name_space(Node node) const { return At(node).name_space; }
  bool held(Node node) const { return At(node).copies > 0; }
  bool has_children(Node node) const { return At(node).children > 0; }

  // A new block, held once, or a ghost. The hash must not be known. kNone when memory does not
  // allow it.
  Node Insert(uint64_t hash, uint64_t key, Node parent, uint16_t name_space, bool ghost);
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
  struct Place {
    uint32_t hash_low;
    uint32_t hash_high;
    uint32_t node;
    uint64_t hash() const { return (uint64_t{hash_high} << 32) | hash_low; }
  };
  static_assert(sizeof(Record) == 20 && sizeof(Place) == 12);
  static constexpr size_t kChunk = 1024;  // records

  Record& At(Node node) { return chunks_[node / kChunk][node % kChunk]; }
  const Record& At(Node node) const { return chunks_[node / kChunk][node % kChunk]; }
  // Engines may count their hashes up; the secret keeps them from crowding one place on purpose.
  size_t HomeOf(uint64_t hash) const {
    uint64_t mixed = (hash ^ secret_) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93u;
    return static_cast<size_t>(((mixed >> 32) * places_size_) >> 32);
  }
  size_t Next(size_t i) const { return i + 1 == places_size_ ? 0 : i + 1; }
  size_t PlaceOf(uint64_t hash) const;

  bool MakeRoom();
  bool Rehash(size_t size, bool must);
  void Enter(uint64_t hash, Node node);
  void ErasePlace(size_t hole);
  Node TakeRecord();
  void Release(uint64_t hash, Node node);
  void Compact();
  bool AddChunk(bool must);

  MemoryMeter& meter_;
  const uint64_t secret_;
  std::unique_ptr<Place[]> places_;
  size_t places_size_ = 0;
  size_t known_ = 0;  // held and ghosts
  size_t held_ = 0;
  std::vector<std::unique_ptr<Record[]>> chunks_;
  Node free_ = kNone;
  Node fresh_ = 0;  // records from here on were never used
  uint64_t picks_ = 0;
  std::unordered_map<Node, uint64_t> ghost_hashes_;
};

}  // namespace fathom
