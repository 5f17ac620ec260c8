#include "io/http/body_storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "base/check.h"

namespace fathom {

bool BodyStorage::Reserve(size_t bytes, size_t limit) {
  const size_t wanted = size_ + bytes;
  if (wanted <= capacity_) return true;
  if (wanted >= kMapFrom) return Map(std::max(wanted, limit));
  const size_t capacity = std::min(std::max(std::bit_ceil(wanted), capacity_ * 2), kMapFrom);
  char* const larger = static_cast<char*>(std::realloc(data_, capacity));
  if (larger == nullptr) return false;
  data_ = larger;
  capacity_ = capacity;
  return true;
}

bool BodyStorage::Map(size_t capacity) {
  CHECK(!mapped_);  // the first mapping was made for the limit
  void* const region = ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) return false;
  if (size_ > 0) std::memcpy(region, data_, size_);
  std::free(data_);
  data_ = static_cast<char*>(region);
  capacity_ = capacity;
  mapped_ = true;
  return true;
}

void BodyStorage::Append(std::string_view bytes) {
  CHECK(bytes.size() <= capacity_ - size_);
  if (bytes.empty()) return;
  std::memcpy(data_ + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

void BodyStorage::Free() {
  if (mapped_) {
    ::munmap(data_, capacity_);
  } else {
    std::free(data_);
  }
  data_ = nullptr;
  size_ = capacity_ = 0;
  mapped_ = false;
}

}  // namespace fathom
