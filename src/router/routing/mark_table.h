// Which ranks were sent prompts that reach this mark, and in which state are those prompts?
//
// A hash table from (mark, rank) to counts, and another one from the mark to a chain of all its
// ranks: a system prompt that the whole fleet knows makes a long chain.
//
// Memory   A node of 64 bytes per mark and rank; no allocation once the table has grown.
// Threads  One at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "router/index/prefix_index.h"

namespace fathom {

class MarkTable {
 public:
  struct Node {
    uint64_t mark = 0;
    RankLabel rank;
    uint32_t running = 0;     // requests
    uint32_t prefilling = 0;  // of these, without a first byte; and prompts of other replicas
    uint32_t ending = 0;  // beliefs without a request here: ended ones, and those of other replicas
    // Others, 1-based.
    uint32_t next = 0;    // of the mark
    uint32_t before = 0;  // of the mark
    uint32_t beside = 0;  // of the same slot for (mark, rank)
    TimePoint sent_last{};
    TimePoint believed_until{};

    // A prefill that takes longer than this is considered hung.
    static constexpr Duration kLongestPrefill = std::chrono::seconds(60);
    bool believed(TimePoint now) const {
      return (prefilling > 0 && now < sent_last + kLongestPrefill) || now < believed_until;
    }
    bool idle() const { return running == 0 && ending == 0; }
  };

  MarkTable() : heads_(kFirstHeads), pairs_(kFirstHeads) {}

  // Created if missing.
  Node& Get(uint64_t mark, RankLabel rank);
  // Null if missing.
  Node* Find(uint64_t mark, RankLabel rank);
  void Erase(uint64_t mark, RankLabel rank);

  // Calls `visit` with every node of the mark. True if there was one.
  template <typename F>
  bool ForEach(uint64_t mark, F&& visit) const {
    bool any = false;
    for (uint32_t at = heads_[Slot(mark)]; at != 0; at = nodes_[at - 1].next) {
      if (nodes_[at - 1].mark != mark) continue;
      any = true;
      visit(nodes_[at - 1]);
    }
    return any;
  }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kFirstHeads = 64;

  size_t Slot(uint64_t mark) const { return mark & (heads_.size() - 1); }
  size_t PairSlot(uint64_t mark, const RankLabel& rank) const;
  void Link(uint32_t place);
  void Unlink(uint32_t place);
  void Grow();

  std::vector<uint32_t> heads_;  // by mark; 1-based; 0: an empty chain
  std::vector<uint32_t> pairs_;  // by mark and rank, likewise
  std::vector<Node> nodes_;
  uint32_t free_ = 0;  // head of the free list, 1-based
  size_t size_ = 0;
};

}  // namespace fathom
