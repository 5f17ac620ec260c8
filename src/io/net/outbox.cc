#include "io/net/outbox.h"

#include <utility>

namespace fathom {

size_t Outbox::SizeOf(const OutboxItem& item) {
  return kOverhead + item.to.size() + item.bytes->size();
}

bool Outbox::Keep(OutboxItem item) {
  bytes_ += SizeOf(item);
  items_.push_back(std::move(item));
  return true;
}

bool Outbox::Push(OutboxItem item) {
  const size_t size = SizeOf(item);
  if (size > most_bytes_) {
    ++dropped_;
    return false;
  }
  while (bytes_ + size > most_bytes_) {
    Pop();
    ++dropped_;
  }
  return Keep(std::move(item));
}

bool Outbox::PushBulk(OutboxItem item) {
  if (bytes_ + SizeOf(item) > most_bytes_ / 2) return false;
  return Keep(std::move(item));
}

OutboxItem Outbox::Pop() {
  OutboxItem item = std::move(items_.front());
  items_.pop_front();
  bytes_ -= SizeOf(item);
  return item;
}

void Outbox::Clear() {
  dropped_ += items_.size();
  items_.clear();
  bytes_ = 0;
}

}  // namespace fathom
