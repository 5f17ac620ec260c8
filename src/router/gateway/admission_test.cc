#include "router/gateway/admission.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "testing/loop_thread.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A waiter that records its verdict.
struct Waiter {
  Waiter(Admission& admission, Loop& loop, TimePoint deadline) : wait(admission, loop, deadline) {}
  Admission::Wait wait;
  bool over = false;
  AdmissionVerdict verdict{};
};

Task<void> Await(Waiter& waiter, std::string* log = nullptr, char name = '?') {
  waiter.verdict = co_await waiter.wait;
  waiter.over = true;
  if (log != nullptr) *log += name;
}

class AdmissionTest : public testing::Test {
 protected:
  std::unique_ptr<Waiter> Wait(Admission& admission, Duration patience = seconds(20)) {
    const TimePoint deadline = std::chrono::steady_clock::now() + patience;
    return std::make_unique<Waiter>(admission, thread_.loop(), deadline);
  }
  LoopThread thread_;
};

TEST_F(AdmissionTest, LetsInAsManyAsTheLimit) {
  Admission admission(2, 5);
  EXPECT_TRUE(admission.TryEnter());
  EXPECT_TRUE(admission.TryEnter());
  EXPECT_FALSE(admission.TryEnter());
  EXPECT_EQ(admission.inside(), 2);
  admission.Leave();
  EXPECT_TRUE(admission.TryEnter());
  admission.Leave();
  admission.Leave();
  EXPECT_EQ(admission.inside(), 0);
}

TEST_F(AdmissionTest, GrantsPlacesInTheOrderOfComing) {
  Admission admission(1, 5);
  ASSERT_TRUE(admission.TryEnter());
  std::string order;
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (const char name : {'a', 'b', 'c'}) {
    waiters.push_back(Wait(admission));
    thread_.Call([&] { Spawn(Await(*waiters.back(), &order, name)); });
  }
  EXPECT_EQ(admission.waiting(), 3);
  EXPECT_FALSE(admission.TryEnter());
  for (const char* expected : {"a", "ab", "abc"}) {
    admission.Leave();
    thread_.Settle();
    EXPECT_EQ(order, expected);
    EXPECT_FALSE(admission.TryEnter()) << "nobody overtakes, and the place is taken";
  }
  admission.Leave();
  EXPECT_EQ(admission.inside(), 0);
  EXPECT_EQ(admission.waiting(), 0);
}

TEST_F(AdmissionTest, TellsWhoeverComesToAFullQueueAtOnce) {
  Admission admission(1, 1);
  ASSERT_TRUE(admission.TryEnter());
  auto first = Wait(admission);
  auto second = Wait(admission);
  thread_.Call([&] { Spawn(Await(*first)); });
  thread_.Call([&] { Spawn(Await(*second)); });
  EXPECT_FALSE(first->over);
  ASSERT_TRUE(second->over);
  EXPECT_EQ(second->verdict, AdmissionVerdict::kFull);
  admission.Leave();
  thread_.Settle();
  EXPECT_EQ(first->verdict, AdmissionVerdict::kAdmitted);
  admission.Leave();
}

TEST_F(AdmissionTest, HasNoQueueWhenNobodyMayWait) {
  Admission admission(1, 0);
  ASSERT_TRUE(admission.TryEnter());
  auto waiter = Wait(admission);
  thread_.Call([&] { Spawn(Await(*waiter)); });
  EXPECT_EQ(waiter->verdict, AdmissionVerdict::kFull);
  admission.Leave();
}

TEST_F(AdmissionTest, EndsAWaitAtItsDeadlineAndGivesThePlaceToTheNext) {
  Admission admission(1, 5);
  ASSERT_TRUE(admission.TryEnter());
  auto brief = Wait(admission, milliseconds(10));
  auto patient = Wait(admission);
  thread_.Call([&] { Spawn(Await(*brief)); });
  thread_.Call([&] { Spawn(Await(*patient)); });
  std::this_thread::sleep_for(milliseconds(30));
  thread_.Settle();
  thread_.Call([&] {
    EXPECT_TRUE(brief->over);
    EXPECT_EQ(brief->verdict, AdmissionVerdict::kTimedOut);
    EXPECT_FALSE(patient->over);
  });
  EXPECT_EQ(admission.waiting(), 1);
  admission.Leave();
  thread_.Settle();
  EXPECT_EQ(patient->verdict, AdmissionVerdict::kAdmitted);
  admission.Leave();
  EXPECT_EQ(admission.inside(), 0);
}

TEST_F(AdmissionTest, EndsAWaitThatIsCancelledInsideTheCall) {
  Admission admission(1, 5);
  ASSERT_TRUE(admission.TryEnter());
  auto waiter = Wait(admission);
  thread_.Call([&] {
    Spawn(Await(*waiter));
    waiter->wait.Cancel();
    EXPECT_TRUE(waiter->over);
  });
  EXPECT_EQ(waiter->verdict, AdmissionVerdict::kCancelled);
  EXPECT_EQ(admission.waiting(), 0);
  admission.Leave();
  EXPECT_EQ(admission.inside(), 0);
}

// The place was granted; the notification is in transit. Giving up now must not lose the place.
TEST_F(AdmissionTest, AdmitsAWaiterWhoIsCancelledJustAfterAPlaceWasGranted) {
  Admission admission(1, 5);
  ASSERT_TRUE(admission.TryEnter());
  auto waiter = Wait(admission);
  thread_.Call([&] {
    Spawn(Await(*waiter));
    admission.Leave();
    waiter->wait.Cancel();
    EXPECT_FALSE(waiter->over);
  });
  thread_.Settle();
  EXPECT_EQ(waiter->verdict, AdmissionVerdict::kAdmitted);
  EXPECT_EQ(admission.inside(), 1);
  admission.Leave();
}

TEST_F(AdmissionTest, GrantsAcrossLoops) {
  Admission admission(1, 5);
  ASSERT_TRUE(admission.TryEnter());
  LoopThread other;
  auto here = Wait(admission);
  Waiter there(admission, other.loop(), std::chrono::steady_clock::now() + seconds(20));
  thread_.Call([&] { Spawn(Await(*here)); });
  other.Call([&] { Spawn(Await(there)); });
  other.Call([&] { admission.Leave(); });
  thread_.Settle();
  EXPECT_EQ(here->verdict, AdmissionVerdict::kAdmitted);
  thread_.Call([&] { admission.Leave(); });
  other.Settle();
  EXPECT_EQ(there.verdict, AdmissionVerdict::kAdmitted);
  admission.Leave();
  EXPECT_EQ(admission.inside(), 0);
}

struct Totals {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> admitted{0};
  std::atomic<int> full{0};
  std::atomic<int> timed_out{0};
};

// A client that enters, works and leaves repeatedly, and sometimes gives up early.
Task<void> Visit(Admission& admission, Loop& loop, int times, uint64_t seed, Duration patience,
                 Totals& totals) {
  Random random(seed);
  for (int i = 0; i < times; ++i) {
    bool entered = admission.TryEnter();
    if (!entered) {
      const Duration mine = random.Below(4) == 0 ? patience : Duration(seconds(20));
      Admission::Wait wait(admission, loop, loop.now() + mine);
      const AdmissionVerdict verdict = co_await wait;
      entered = verdict == AdmissionVerdict::kAdmitted;
      totals.full += verdict == AdmissionVerdict::kFull;
      totals.timed_out += verdict == AdmissionVerdict::kTimedOut;
      if (verdict == AdmissionVerdict::kFull) co_await loop.Sleep(Duration(1));
    }
    if (!entered) continue;
    ++totals.admitted;
    const int now = ++totals.inside;
    int most = totals.most;
    while (now > most && !totals.most.compare_exchange_weak(most, now)) {
    }
    if (random.Below(8) == 0) co_await loop.Sleep(Duration(1));
    --totals.inside;
    admission.Leave();
  }
}

void Stress(uint32_t limit, uint32_t max_waiting, int visitors, int times, Duration patience,
            Totals& totals) {
  Admission admission(limit, max_waiting);
  constexpr int kLoops = 3;
  std::vector<std::unique_ptr<LoopThread>> threads;
  for (int i = 0; i < kLoops; ++i) threads.push_back(std::make_unique<LoopThread>());
  std::vector<std::thread> callers;
  for (int v = 0; v < visitors; ++v) {
    LoopThread& thread = *threads[static_cast<size_t>(v % kLoops)];
    callers.emplace_back([&, v] {
      thread.Complete([&] {
        return Visit(admission, thread.loop(), times, static_cast<uint64_t>(v), patience, totals);
      });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_LE(totals.most, static_cast<int>(limit));
  EXPECT_EQ(admission.inside(), 0);
  EXPECT_EQ(admission.waiting(), 0);
  EXPECT_EQ(totals.admitted + totals.full + totals.timed_out, visitors * times);
}

TEST(AdmissionStress, NeverLetsInTooManyNorForgetsAnybody) {
  Totals totals;
  Stress(2, 100, 12, 150, milliseconds(1), totals);
  EXPECT_EQ(totals.full, 0);
}

// With a full queue, no waiter may keep waiting while a place is free.
TEST(AdmissionStress, GrantsEveryFreePlaceWhenTheQueueIsFullToo) {
  Totals totals;
  Stress(1, 1, 6, 300, seconds(20), totals);
  EXPECT_EQ(totals.timed_out, 0);
}

}  // namespace
}  // namespace fathom
