// Which messages wait to be sent, and which ones are dropped when too many wait?
//
// For messages that are best effort, of which an old one is worth less than a new one. The oldest
// ones give way. Bulk has to wait instead: it is refused while half of the room is taken, so that
// it never displaces anything, and its sender can try again.
//
// Threads  One, or under the owner's lock.
// Memory   At most `most_bytes`, and kOverhead for each message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

namespace fathom {

struct OutboxItem {
  std::string to;
  std::shared_ptr<const std::string> bytes;  // several boxes may hold one message
};

class Outbox {
 public:
  static constexpr size_t kOverhead = 128;

  explicit Outbox(size_t most_bytes) : most_bytes_(most_bytes) {}

  // False: it alone is longer than the room.
  bool Push(OutboxItem item);
  // False: half of the room is taken.
  bool PushBulk(OutboxItem item);
  // Precondition: not empty().
  OutboxItem Pop();
  // All that wait are dropped.
  void Clear();

  bool empty() const { return items_.empty(); }
  size_t bytes() const { return bytes_; }
  // Those that were pushed and gave way, or were too long.
  uint64_t dropped() const { return dropped_; }

 private:
  static size_t SizeOf(const OutboxItem& item);
  bool Keep(OutboxItem item);

  const size_t most_bytes_;
  std::deque<OutboxItem> items_;
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace fathom
