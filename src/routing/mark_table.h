// Which ranks were sent prompts that reach this mark, and what has become of them?
//
// A hash table from (mark, rank) to counts, where all ranks of a mark are found together.
//
// Memory   A node of 64 bytes per mark and rank; nothing is allocated once it has grown.
// Threads  One at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "index/prefix_index.h"

namespace fathom {

class MarkTable {
 public:
  struct Node {
    uint64_t mark = 0;
    RankLabel rank;
    uint32_t running = 0;     // requests
    uint32_t prefilling = 0;  // of these, without a first byte
    uint32_t ending = 0;      // whose belief outlives them
    TimePoint sent_last{};
    TimePoint believed_until{};
    uint32_t next = 0;  // in its chain, counted from 1

    // A prefill that takes very long is one that hangs.
    static constexpr Duration kLongestPrefill = std::chrono::seconds(60);
    bool believed(TimePoint now) const {
      return (prefilling > 0 && now < sent_last + kLongestPrefill) || now < believed_until;
    }
    bool idle() const { return running == 0 && ending == 0; }
  };

  MarkTable() : heads_(kFirstHeads) {}

  // Made if it is missing.
  Node& Get(uint64_t mark, RankLabel rank);
  // Null if it is missing.
  Node* Find(uint64_t mark, RankLabel rank);
  void Erase(uint64_t mark, RankLabel rank);

  // Calls `visit` with every node of the mark. Whether there was one.
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
  void Grow();

  std::vector<uint32_t> heads_;  // counted from 1; 0: an empty chain
  std::vector<Node> nodes_;
  uint32_t free_ = 0;  // a chain of its own
  size_t size_ = 0;
};

}  // namespace fathom
