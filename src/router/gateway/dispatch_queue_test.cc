#include "router/gateway/dispatch_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "testing/loop_thread.h"
#include "testing/sanitizers.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Ranks, reduced to their free places.
class Places {
 public:
  explicit Places(int free = 0) : free_(free) {}

  bool TryTake() {
    int free = free_;
    while (free > 0 && !free_.compare_exchange_weak(free, free - 1)) {
    }
    return free > 0;
  }
  void Free() { ++free_; }
  int free() const { return free_; }

 private:
  std::atomic<int> free_;
};

// A request that waits in a line until there is a place, and records the result.
struct Guest {
  char name = '?';
  std::string model = "m";
  std::function<void()> on_failure = [] {};  // when a try found no place
  DispatchQueue::Waiter* waiter = nullptr;
  std::atomic<int> tries{0};
  std::atomic<bool> over{false};
  std::atomic<WakeCause> last{WakeCause::kWoken};
};

class DispatchQueueTest : public testing::Test {
 protected:
  Guest& Join(char name, LoopThread& thread, std::string model = "m",
              Duration patience = seconds(20)) {
    Guest& guest = *guests_.emplace_back(std::make_unique<Guest>());
    guest.name = name;
    guest.model = std::move(model);
    Start(guest, thread, patience);
    return guest;
  }
  void Start(Guest& guest, LoopThread& thread, Duration patience = seconds(20)) {
    thread.Call([&] { Spawn(Stand(guest, thread.loop(), thread.loop().now() + patience)); });
  }
  Task<void> Stand(Guest& guest, Loop& loop, TimePoint deadline) {
    DispatchQueue::Waiter waiter(queue_, loop, guest.model, deadline);
    guest.waiter = &waiter;
    while (!guest.over) {
      const WakeCause cause = co_await waiter;
      guest.last = cause;
      if (cause == WakeCause::kWoken) ++guest.tries;
      guest.over = cause != WakeCause::kWoken || PlacesOf(guest.model).TryTake();
      if (!guest.over) guest.on_failure();
    }
    const std::lock_guard lock(mutex_);
    order_ += guest.name;
  }
  Places& PlacesOf(const std::string& model) { return model == "m" ? places_ : others_; }
  void Free(Places& places) {
    places.Free();
    queue_.Wake();
    Settle();
  }
  // Runs everything that is posted or due.
  void Settle() {
    for (int i = 0; i < 6; ++i) {
      one_.Call([] {});
      two_.Call([] {});
    }
  }
  std::string order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }

  DispatchQueue queue_;
  Places places_;
  Places others_;  // of another model
  std::vector<std::unique_ptr<Guest>> guests_;
  std::mutex mutex_;
  std::string order_;  // guarded by mutex_
  LoopThread one_;
  LoopThread two_;
};

TEST_F(DispatchQueueTest, GivesTheFirstOfALineItsTurnAtOnce) {
  const Guest& first = Join('a', one_);
  const Guest& second = Join('b', one_);
  Settle();
  EXPECT_EQ(first.tries, 1) << "room may have come while it joined";
  EXPECT_EQ(second.tries, 0);
  EXPECT_EQ(queue_.waiting(), 2u);
  Free(places_);
  Free(places_);
  EXPECT_EQ(order(), "ab");
  EXPECT_EQ(queue_.waiting(), 0u);
}

TEST_F(DispatchQueueTest, KnowsWhereSomebodyWaits) {
  EXPECT_FALSE(queue_.Waiting("m"));
  Join('a', one_);
  EXPECT_TRUE(queue_.Waiting("m"));
  EXPECT_FALSE(queue_.Waiting("other"));
  Free(places_);
  EXPECT_FALSE(queue_.Waiting("m"));
}

TEST_F(DispatchQueueTest, ServesInTheOrderOfComingAcrossLoops) {
  std::string expected;
  for (const char name : {'a', 'b', 'c', 'd'}) Join(name, name % 2 == 0 ? one_ : two_);
  for (const char name : {'a', 'b', 'c', 'd'}) {
    expected += name;
    Free(places_);
    EXPECT_EQ(order(), expected);
  }
}

TEST_F(DispatchQueueTest, TellsTheNextWhenTheFirstHasLeft) {
  for (const char name : {'a', 'b', 'c', 'd'}) Join(name, name % 2 == 0 ? one_ : two_);
  for (int i = 0; i < 3; ++i) places_.Free();
  queue_.Wake();
  Settle();
  EXPECT_EQ(order(), "abc") << "one call is enough for all who find room";
  EXPECT_EQ(guests_[3]->tries, 1);
  Free(places_);
  EXPECT_EQ(order(), "abcd");
}

TEST_F(DispatchQueueTest, WakesTheFirstOfALineOnly) {
  Guest& first = Join('a', one_);
  Guest& second = Join('b', two_);
  for (int i = 0; i < 5; ++i) {
    queue_.Wake();
    Settle();
  }
  EXPECT_EQ(first.tries, 6);
  EXPECT_EQ(second.tries, 0);
  Free(places_);
  Free(places_);
}

TEST_F(DispatchQueueTest, KeepsModelsFromBlockingEachOther) {
  Join('a', one_);
  Join('b', one_);
  Join('x', one_, "other");
  Join('y', two_, "other");
  Free(others_);
  EXPECT_EQ(order(), "x");
  Free(others_);
  EXPECT_EQ(order(), "xy");
  Free(places_);
  Free(places_);
  EXPECT_EQ(order(), "xyab");
}

TEST_F(DispatchQueueTest, EndsAWaitAtItsDeadlineAndTellsTheNext) {
  const Guest& brief = Join('a', one_, "m", milliseconds(10));
  const Guest& patient = Join('b', two_);
  while (!brief.over) std::this_thread::sleep_for(milliseconds(1));
  Settle();
  EXPECT_EQ(brief.last, WakeCause::kTimedOut);
  EXPECT_EQ(patient.tries, 1);
  EXPECT_EQ(queue_.waiting(), 1u);
  Free(places_);
  EXPECT_EQ(order(), "ab");
}

TEST_F(DispatchQueueTest, EndsAWaitThatIsCancelledInsideTheCall) {
  Guest& first = Join('a', one_);
  Guest& second = Join('b', two_);
  one_.Call([&] {
    first.waiter->Cancel();
    EXPECT_TRUE(first.over);
  });
  Settle();
  EXPECT_EQ(first.last, WakeCause::kCancelled);
  EXPECT_EQ(second.tries, 1) << "it is the first now";
  two_.Call([&] { second.waiter->Cancel(); });
  EXPECT_EQ(second.last, WakeCause::kCancelled);
  EXPECT_EQ(queue_.waiting(), 0u);
  EXPECT_FALSE(queue_.Waiting("m"));
}

TEST_F(DispatchQueueTest, LetsSomebodyLeaveFromTheMiddle) {
  Join('a', one_);
  Guest& middle = Join('b', one_);
  const Guest& last = Join('c', one_);
  one_.Call([&] { middle.waiter->Cancel(); });
  Settle();
  EXPECT_EQ(last.tries, 0);
  Free(places_);
  Free(places_);
  EXPECT_EQ(order(), "bac");
}

// The turn is already in transit: it arrives first, and the cancelled waiter handles it.
TEST_F(DispatchQueueTest, GivesATurnToWhoeverIsCancelledJustAfterBeingTold) {
  Guest& guest = Join('a', one_);
  one_.Call([&] {
    places_.Free();
    queue_.Wake();
    guest.waiter->Cancel();
    EXPECT_FALSE(guest.over);
  });
  Settle();
  EXPECT_TRUE(guest.over);
  EXPECT_EQ(guest.last, WakeCause::kWoken);
}

// There was no place; one becomes free before the guest sleeps again.
TEST_F(DispatchQueueTest, DoesNotLoseACallBetweenTheTryAndTheSleep) {
  Guest guest;
  guest.on_failure = [&] {
    if (guest.tries > 1) return;
    places_.Free();
    queue_.Wake();
  };
  Start(guest, one_);
  EXPECT_TRUE(guest.over);
  EXPECT_EQ(guest.tries, 2);
}

TEST_F(DispatchQueueTest, TriesOnceForSeveralCallsThatComeTogether) {
  Guest& guest = Join('a', one_);
  one_.Call([&] {
    for (int i = 0; i < 5; ++i) queue_.Wake();
  });
  Settle();
  EXPECT_EQ(guest.tries, 2);
  Free(places_);
}

struct QueueTotals {
  std::atomic<int> served{0};
  std::atomic<int> waited{0};
  std::atomic<int> timed_out{0};
};

// Arrives repeatedly; takes a place if no request waits, otherwise waits in line.
Task<void> VisitQueue(DispatchQueue& queue, Places& places, Loop& loop, std::string model,
                      int times, uint64_t seed, Duration brief, QueueTotals& totals) {
  Random random(seed);
  for (int i = 0; i < times; ++i) {
    bool placed = !queue.Waiting(model) && places.TryTake();
    if (!placed) {
      ++totals.waited;
      const Duration patience = random.Below(4) == 0 ? brief : Duration(seconds(60));
      DispatchQueue::Waiter waiter(queue, loop, model, loop.now() + patience);
      WakeCause cause = WakeCause::kWoken;
      while (!placed && cause == WakeCause::kWoken) {
        cause = co_await waiter;
        placed = cause == WakeCause::kWoken && places.TryTake();
      }
    }
    if (!placed) {
      ++totals.timed_out;
      continue;
    }
    ++totals.served;
    if (random.Below(8) == 0) co_await loop.Sleep(Duration(1));
    places.Free();
    queue.Wake();
  }
}

void StressQueue(int visitors, int times, Duration brief, QueueTotals& totals) {
  DispatchQueue queue;
  Places places(1);
  Places others(2);
  constexpr int kLoops = 3;
  std::vector<std::unique_ptr<LoopThread>> threads;
  for (int i = 0; i < kLoops; ++i) threads.push_back(std::make_unique<LoopThread>());
  std::vector<std::thread> callers;
  for (int v = 0; v < visitors; ++v) {
    LoopThread& thread = *threads[static_cast<size_t>(v % kLoops)];
    callers.emplace_back([&, v] {
      const bool other = v % 4 == 0;
      thread.Complete([&] {
        return VisitQueue(queue, other ? others : places, thread.loop(), other ? "other" : "m",
                          times, static_cast<uint64_t>(v), brief, totals);
      });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(queue.waiting(), 0u);
  EXPECT_EQ(places.free(), 1);
  EXPECT_EQ(others.free(), 2);
  EXPECT_EQ(totals.served + totals.timed_out, visitors * times);
  EXPECT_GT(totals.waited, 0);
}

// A lost wake-up would leave a waiter asleep until its timeout although a place is free.
TEST(DispatchQueueStress, ForgetsNobody) {
  QueueTotals totals;
  StressQueue(12, kSanitized ? 60 : 300, seconds(60), totals);
  EXPECT_EQ(totals.timed_out, 0);
}

TEST(DispatchQueueStress, ForgetsNobodyWhenSomeAreImpatient) {
  QueueTotals totals;
  StressQueue(12, kSanitized ? 60 : 300, std::chrono::microseconds(50), totals);
}

}  // namespace
}  // namespace fathom
