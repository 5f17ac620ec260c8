#include "routing/mark_table.h"

namespace fathom {

MarkTable::Node* MarkTable::Find(uint64_t mark, RankLabel rank) {
  for (uint32_t at = heads_[Slot(mark)]; at != 0; at = nodes_[at - 1].next) {
    Node& node = nodes_[at - 1];
    if (node.mark == mark && node.rank == rank) return &node;
  }
  return nullptr;
}

MarkTable::Node& MarkTable::Get(uint64_t mark, RankLabel rank) {
  if (Node* const node = Find(mark, rank)) return *node;
  if (size_ == heads_.size()) Grow();
  if (free_ == 0) {
    nodes_.emplace_back();
    free_ = static_cast<uint32_t>(nodes_.size());
  }
  const uint32_t place = free_;
  Node& node = nodes_[place - 1];
  free_ = node.next;
  uint32_t& head = heads_[Slot(mark)];
  node = {.mark = mark, .rank = rank, .next = head};
  head = place;
  ++size_;
  return node;
}

void MarkTable::Erase(uint64_t mark, RankLabel rank) {
  for (uint32_t* link = &heads_[Slot(mark)]; *link != 0; link = &nodes_[*link - 1].next) {
    Node& node = nodes_[*link - 1];
    if (node.mark != mark || node.rank != rank) continue;
    const uint32_t place = *link;
    *link = node.next;
    node.next = free_;
    free_ = place;
    --size_;
    return;
  }
}

void MarkTable::Grow() {
  std::vector<uint32_t> old(heads_.size() * 2);
  old.swap(heads_);
  for (uint32_t at : old) {
    while (at != 0) {
      Node& node = nodes_[at - 1];
      const uint32_t next = node.next;
      uint32_t& head = heads_[Slot(node.mark)];
      node.next = head;
      head = at;
      at = next;
    }
  }
}

}  // namespace fathom
