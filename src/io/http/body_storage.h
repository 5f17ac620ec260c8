// Holds one request body that did not fit the read buffer: contiguous, copied about once.
//
// Small and medium bodies come from the allocator, which reuses their pages between requests. Large
// ones are mapped: address space up to the limit is reserved at once and memory is only used as
// bytes arrive. So a growing body is never copied, and a false Content-Length costs no memory.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace fathom {

class BodyStorage {
 public:
  BodyStorage() = default;
  ~BodyStorage() { Free(); }
  BodyStorage(const BodyStorage&) = delete;
  BodyStorage& operator=(const BodyStorage&) = delete;

  // Ensures room for `bytes` more. The body will never be longer than `limit`. False if memory is
  // exhausted.
  bool Reserve(size_t bytes, size_t limit);

  std::span<char> room() { return {data_ + size_, capacity_ - size_}; }
  void Commit(size_t bytes) { size_ += bytes; }
  void Append(std::string_view bytes);

  std::string_view view() const { return {data_, size_}; }
  size_t capacity() const { return capacity_; }
  void Free();

 private:
  static constexpr size_t kMapFrom = 8 << 20;

  bool Map(size_t capacity);

  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool mapped_ = false;
};

}  // namespace fathom
