// Does raising a metric allocate? Counts this program's allocations by replacing operator new,
// which the sanitizers also replace, so this file is empty in their builds.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FATHOM_SANITIZED
#endif
#endif

#ifndef FATHOM_SANITIZED

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "metrics/catalogue.h"
#include "metrics/registry.h"

namespace {

thread_local size_t allocations = 0;

}  // namespace

// Not inlined: g++ 12 would see free() on memory from new, and warn. Over-aligned memory uses
// another operator and is not counted; the hot path does not need it.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace fathom {
namespace {

TEST(HotPath, AllocatesNothingEvenWhenAThreadIsNew) {
  constexpr double kBounds[] = {0.01, 0.1, 1};
  Registry registry;
  Counter& counter = registry.AddCounter(Metric("fathom_retries_denied_total"));
  Gauge& gauge = registry.AddGauge(Metric("fathom_requests_in_flight"));
  Histogram& histogram = registry.AddHistogram(Metric("kv_router_queue_wait_seconds"), kBounds);
  size_t counted = 0;
  std::jthread([&] {
    const size_t before = allocations;
    counter.Add();
    gauge.Add(1);
    gauge.Set(5);
    histogram.Observe(std::chrono::milliseconds(1));
    counted = allocations - before;
  }).join();
  EXPECT_EQ(counted, 0u);
}

TEST(HotPath, IsMeasuredByACountThatCounts) {
  const Registry registry;
  const size_t before = allocations;
  EXPECT_FALSE(registry.Render().empty());
  EXPECT_GT(allocations, before);
}

}  // namespace
}  // namespace fathom

#endif  // FATHOM_SANITIZED
