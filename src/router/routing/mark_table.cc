#include "router/routing/mark_table.h"

namespace fathom {

static_assert(sizeof(MarkTable::Node) == 64);

size_t MarkTable::PairSlot(uint64_t mark, const RankLabel& rank) const {
  const uint64_t both = mark ^ ((rank.worker + rank.dp_rank) * 0x9e3779b97f4a7c15u);
  return (both ^ (both >> 32)) & (pairs_.size() - 1);
}

MarkTable::Node* MarkTable::Find(uint64_t mark, RankLabel rank) {
  for (uint32_t at = pairs_[PairSlot(mark, rank)]; at != 0; at = nodes_[at - 1].beside) {
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
  node = {.mark = mark, .rank = rank};
  Link(place);
  ++size_;
  return node;
}

void MarkTable::Erase(uint64_t mark, RankLabel rank) {
  const Node* const found = Find(mark, rank);
  if (found == nullptr) return;
  const auto place = static_cast<uint32_t>(found - nodes_.data()) + 1;
  Unlink(place);
  nodes_[place - 1].next = free_;
  free_ = place;
  --size_;
}

// At the front of both of its chains.
void MarkTable::Link(uint32_t place) {
  Node& node = nodes_[place - 1];
  uint32_t& head = heads_[Slot(node.mark)];
  node.next = head;
  node.before = 0;
  if (head != 0) nodes_[head - 1].before = place;
  head = place;
  uint32_t& pair = pairs_[PairSlot(node.mark, node.rank)];
  node.beside = pair;
  pair = place;
}

void MarkTable::Unlink(uint32_t place) {
  const Node& node = nodes_[place - 1];
  (node.before != 0 ? nodes_[node.before - 1].next : heads_[Slot(node.mark)]) = node.next;
  if (node.next != 0) nodes_[node.next - 1].before = node.before;
  uint32_t* link = &pairs_[PairSlot(node.mark, node.rank)];
  while (*link != place) link = &nodes_[*link - 1].beside;
  *link = node.beside;
}

void MarkTable::Grow() {
  std::vector<uint32_t> old(heads_.size() * 2);
  old.swap(heads_);
  pairs_.assign(heads_.size(), 0);
  for (uint32_t at : old) {
    while (at != 0) {
      const uint32_t next = nodes_[at - 1].next;
      Link(at);
      at = next;
    }
  }
}

}  // namespace fathom
