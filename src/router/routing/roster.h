// Which ranks may be chosen for a model, and what is known of each from one decision to the next?
//
// Every rank has a position. Ranks that share a block of load (router/fleet/load_block.h) are
// neighbours, so that a decision can pass over a whole block.
//
//   roster.Assign(places)             when the candidates of the model have changed
//   roster.StartTurn()                for each decision;
//   roster.Exclude(label)             then those that may not be chosen this time
//   steering.Decide(question, roster, ...)
//
// Threads  One.
// Memory   About 150 bytes per rank, and 24 per rank in the index.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "router/fleet/worker.h"
#include "router/index/cache_index.h"

namespace fathom {

// A possible destination of the request.
struct Place {
  Worker* worker = nullptr;
  Rank* rank = nullptr;

  RankLabel label() const { return {worker->id().value(), rank->number}; }
};

class Roster {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint32_t kSeen = kNone - 1;

  // With blocks: places are rearranged. Without: every decision looks at all of them.
  enum class Blocks : uint8_t { kUsed, kIgnored };
  void Assign(std::span<const Place> places, Blocks blocks);
  // Whether these are the places, in this order.
  bool Has(std::span<const Place> places) const;

  static constexpr uint64_t kUnread = ~uint64_t{0};
  // Neighbours that share a block.
  struct Part {
    std::shared_ptr<LoadBlock> block;  // null: its ranks have none
    uint32_t begin = 0;
    uint32_t end = 0;
    uint64_t most_free = 0;  // tokens that one of its caches can take without evicting
    bool outdated = true;    // most_free is
    uint64_t excluded = 0;   // the last turn in which one of its ranks was
    // Of its ranks, at this number of changes of the block: which need not be asked again before
    // one of these has ended.
    std::vector<RankLoad::Silence> silences;
    uint64_t changes = kUnread;
  };

  uint32_t size() const { return static_cast<uint32_t>(places_.size()); }
  const Place& at(uint32_t position) const { return places_[position]; }
  const RankLabel& label(uint32_t position) const { return known_[position].label; }
  // kNone: it has no position.
  uint32_t Find(const RankLabel& rank) const;

  // --- one decision
  void StartTurn();
  void Exclude(uint32_t position);
  bool IsExcluded(uint32_t position) const { return known_[position].excluded == turn_; }
  // Whether no rank of the part is excluded.
  bool IsWhole(const Part& part) const { return part.excluded != turn_; }
  // How many are not excluded.
  uint32_t present() const { return size() - excluded_; }
  // Where the decision lists the rank; kNone: it has not been looked at; kSeen: it has been, and is
  // not listed there.
  uint32_t SlotOf(uint32_t position) const {
    return known_[position].listed == turn_ ? known_[position].slot : kNone;
  }
  void SetSlot(uint32_t position, uint32_t slot) {
    known_[position].listed = turn_;
    known_[position].slot = slot;
  }

  // --- what the index reported last
  struct Holding {
    uint64_t held = 0;  // tokens
    uint32_t block_size = 0;
    bool pairs = false;
    friend bool operator==(const Holding&, const Holding&) = default;
  };
  // Takes over what a lookup found: `visit(position, found)` for each rank that holds a part of the
  // prompt; the position may be kNone.
  template <class F>
  void Take(std::span<const CacheReader::Found> all, F&& visit) {
    if (!SameRanks(all)) Recognise(all);
    for (size_t i = 0; i < all.size(); ++i) {
      const uint32_t position = found_[i].position;
      if (position != kNone) Note(position, {all[i].held, all[i].block_size, all[i].pairs});
      if (all[i].tokens[kTiers - 1] != 0 || all[i].tokens[0] != 0) visit(position, all[i]);
    }
  }
  const Holding& holding(uint32_t position) const { return known_[position].holding; }
  // Tokens that its cache can take without evicting any; the largest number: unknown.
  uint64_t FreeAt(uint32_t position) const { return FreeOf(known_[position]); }

  // --- blocks
  const std::vector<Part>& parts() const { return parts_; }
  std::vector<Part>& parts() { return parts_; }
  uint32_t PartOf(uint32_t position) const { return known_[position].part; }
  bool has_blocks() const { return !parts_.empty() && parts_.front().block != nullptr; }
  uint64_t MostFree(uint32_t part);

 private:
  struct Known {
    RankLabel label;
    Holding holding;
    uint64_t capacity = 0;  // 0: unknown
    uint64_t excluded = 0;  // the last turn
    uint64_t listed = 0;    // the last turn
    uint32_t slot = 0;
    uint32_t part = 0;
  };
  struct FoundRank {
    RankLabel label;
    uint32_t position = kNone;
  };

  static uint64_t FreeOf(const Known& known);
  bool SameRanks(std::span<const CacheReader::Found> all) const;
  void Recognise(std::span<const CacheReader::Found> all);
  void Note(uint32_t position, const Holding& holding);
  void Index();

  std::vector<Place> places_;
  std::vector<Known> known_;
  std::vector<Part> parts_;
  std::vector<uint32_t> slots_;   // hash table of positions; kNone: empty
  std::vector<FoundRank> found_;  // of the last lookup
  uint64_t turn_ = 0;
  uint32_t excluded_ = 0;
};

}  // namespace fathom
