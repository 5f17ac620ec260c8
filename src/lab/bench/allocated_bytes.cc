#include "lab/bench/allocated_bytes.h"

#include <cstddef>

// Of jemalloc, which sanitized builds do without.
extern "C" __attribute__((weak)) int mallctl(const char* name, void* old, size_t* old_size,
                                             void* fresh, size_t fresh_size);

namespace fathom {

std::optional<uint64_t> AllocatedBytesOfThisThread() {
  if (mallctl == nullptr) return std::nullopt;
  uint64_t bytes = 0;
  size_t size = sizeof(bytes);
  if (mallctl("thread.allocated", &bytes, &size, nullptr, 0) != 0) return std::nullopt;
  return bytes;
}

}  // namespace fathom
