#include "app/allocation_count.h"

#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FATHOM_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FATHOM_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef FATHOM_COUNTS_ALLOCATIONS
#define FATHOM_COUNTS_ALLOCATIONS 1
#endif

namespace {

thread_local uint64_t allocations = 0;

}  // namespace

#if FATHOM_COUNTS_ALLOCATIONS

void* operator new(size_t size) {
  ++allocations;
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): what operator new stands on
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// NOLINTBEGIN(cppcoreguidelines-no-malloc)
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
// NOLINTEND(cppcoreguidelines-no-malloc)

#endif

namespace fathom {

std::optional<uint64_t> AllocationsOfThisThread() {
  if (FATHOM_COUNTS_ALLOCATIONS == 0) return std::nullopt;
  return allocations;
}

}  // namespace fathom
