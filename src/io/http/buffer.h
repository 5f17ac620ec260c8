// Bytes that have been read and not yet consumed: one contiguous run in a growing allocation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "base/check.h"

namespace fathom {

class Buffer {
 public:
  explicit Buffer(size_t capacity) : data_(Allocate(capacity)), capacity_(capacity) {}

  std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }
  size_t size() const { return end_ - begin_; }

  // Free space for the next read. Empty span when full: Grow() or Consume() first.
  std::span<char> room() { return {data_.get() + end_, capacity_ - end_}; }
  void Commit(size_t bytes) { end_ += bytes; }

  void Consume(size_t bytes) {
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  // Moves the remaining bytes to the front. Views into the buffer are invalid afterwards.
  void Compact() {
    if (begin_ == 0) return;
    std::memmove(data_.get(), data_.get() + begin_, size());
    end_ -= begin_;
    begin_ = 0;
  }

  // Views into the buffer are invalid afterwards.
  void Grow(size_t capacity) {
    Compact();
    if (capacity <= capacity_) return;
    auto larger = Allocate(capacity);
    std::memcpy(larger.get(), data_.get(), end_);
    data_ = std::move(larger);
    capacity_ = capacity;
  }

  size_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  using Memory = std::unique_ptr<char, Free>;

  static Memory Allocate(size_t capacity) {
    Memory memory(static_cast<char*>(std::malloc(capacity)));
    CHECK(memory != nullptr);
    return memory;
  }

  Memory data_;
  size_t capacity_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace fathom
