#include "io/net/task.h"

#include <array>
#include <new>

namespace fathom {
namespace {

// Sanitizers must see each frame allocated and freed, so they get the plain allocator.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kRecycle = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kRecycle = false;
#else
constexpr bool kRecycle = true;
#endif
#else
constexpr bool kRecycle = true;
#endif

constexpr size_t kStep = 256;
constexpr size_t kClasses = 32;  // frames of up to 8 KiB are recycled
constexpr size_t kKeptPerClass = 256;

struct FreeList {
  struct Node {
    Node* next;
  };
  Node* head;
  size_t size;
};

// Plain data without a destructor, so that access costs no more than for any thread-local. Frames
// on a thread's list are not freed when the thread ends; loops live as long as the process.
constinit thread_local std::array<FreeList, kClasses> kept{};

constexpr size_t ClassOf(size_t size) { return (size + kStep - 1) / kStep; }

}  // namespace

void* AllocateFrame(size_t size) {
  const size_t c = ClassOf(size);
  if (!kRecycle || c >= kClasses) return ::operator new(size);
  FreeList& list = kept[c];
  if (list.head == nullptr) return ::operator new(c * kStep);
  --list.size;
  return std::exchange(list.head, list.head->next);
}

void FreeFrame(void* frame, size_t size) {
  const size_t c = ClassOf(size);
  if (!kRecycle || c >= kClasses || kept[c].size >= kKeptPerClass) {
    ::operator delete(frame);
    return;
  }
  FreeList& list = kept[c];
  list.head = new (frame) FreeList::Node{list.head};
  ++list.size;
}

}  // namespace fathom
