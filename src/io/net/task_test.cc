#include "io/net/task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "testing/gate.h"

namespace fathom {
namespace {

// Counts the live instances.
struct Witness {
  explicit Witness(int& count) : count_(count) { ++count_; }
  ~Witness() { --count_; }
  Witness(const Witness&) = delete;
  int& count_;
};

Task<int> Immediate(int value, std::string& log) {
  log += "ran ";
  co_return value;
}

Task<int> AfterGate(Gate& gate, int value) {
  co_await gate;
  co_return value;
}

Task<void> Sum(Gate& gate, std::string& log, int& out) {
  auto first = Immediate(40, log);
  log += "awaits ";
  const int a = co_await first;
  auto second = AfterGate(gate, 2);
  const int b = co_await second;
  out = a + b;
}

TEST(Task, StartsAtOnceAndRunsToItsFirstRealWait) {
  std::string log;
  Gate gate;
  int out = 0;
  Spawn(Sum(gate, log, out));
  EXPECT_EQ(log, "ran awaits ");
  EXPECT_EQ(out, 0);
  gate.Open();
  EXPECT_EQ(out, 42);
}

TEST(Task, CompletesWithoutSuspensionWhenNothingWaits) {
  std::string log;
  Gate gate;
  gate.Open();
  int out = 0;
  Spawn(Sum(gate, log, out));
  EXPECT_EQ(out, 42);
}

Task<void> HoldWitness(Gate& gate, int& count) {
  const Witness witness(count);
  co_await gate;
}

TEST(Task, FreesItsFrameWhenADetachedOneEnds) {
  Gate gate;
  int alive = 0;
  Spawn(HoldWitness(gate, alive));
  EXPECT_EQ(alive, 1);
  gate.Open();
  EXPECT_EQ(alive, 0);
}

TEST(Task, FreesItsFrameWhenItWasOverBeforeItWasDetached) {
  Gate gate;
  gate.Open();
  int alive = 0;
  Spawn(HoldWitness(gate, alive));
  EXPECT_EQ(alive, 0);
}

Task<std::unique_ptr<std::string>> MakeOwned(Gate& gate) {
  auto text = std::make_unique<std::string>("moved");
  co_await gate;
  co_return text;
}

Task<void> TakeOwned(Gate& gate, std::unique_ptr<std::string>& out) {
  auto making = MakeOwned(gate);
  out = co_await making;
}

TEST(Task, HandsOverResultsThatCanOnlyBeMoved) {
  Gate gate;
  std::unique_ptr<std::string> out;
  Spawn(TakeOwned(gate, out));
  EXPECT_EQ(out, nullptr);
  gate.Open();
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(*out, "moved");
}

Task<int> Nest(Gate& gate, int depth) {
  if (depth == 0) {
    co_await gate;
    co_return 0;
  }
  auto deeper = Nest(gate, depth - 1);
  const int below = co_await deeper;
  co_return below + 1;
}

Task<void> RunNest(Gate& gate, int depth, int& out) {
  auto nested = Nest(gate, depth);
  out = co_await nested;
}

TEST(Task, UnwindsADeepChainOfWaiters) {
  Gate gate;
  int out = -1;
  Spawn(RunNest(gate, 2000, out));
  EXPECT_EQ(out, -1);
  gate.Open();
  EXPECT_EQ(out, 2000);
}

Task<int> One() { co_return 1; }

Task<void> CountUp(int times, int& out) {
  for (int i = 0; i < times; ++i) {
    auto one = One();
    out += co_await one;
  }
}

TEST(Task, AwaitsAMillionFinishedOnesWithoutUsingUpTheStack) {
  int out = 0;
  Spawn(CountUp(1'000'000, out));
  EXPECT_EQ(out, 1'000'000);
}

TEST(Task, KeepsFramesApartWhenManyAreAliveAndEndInAnyOrder) {
  std::vector<std::unique_ptr<Gate>> gates;
  std::vector<int> out(1000, -1);
  for (int i = 0; i < 1000; ++i) {
    gates.push_back(std::make_unique<Gate>());
    Spawn(RunNest(*gates.back(), i % 7, out[static_cast<size_t>(i)]));
  }
  for (size_t i = 0; i < 1000; ++i) gates[i * 7 % 1000]->Open();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], i % 7);
}

TEST(TaskDeathTest, StopsTheProcessWhenAWaitingTaskIsDropped) {
  EXPECT_DEATH(
      {
        Gate gate;
        {
          auto dropped = AfterGate(gate, 1);
        }
      },
      "done");
}

TEST(Frames, CanBeFreedOnAnotherThreadThanTheirOwn) {
  std::vector<std::pair<void*, size_t>> frames;
  for (size_t size = 1; size < 20'000; size += 97) {
    void* const frame = AllocateFrame(size);
    std::fill_n(static_cast<char*>(frame), size, 'x');
    frames.emplace_back(frame, size);
  }
  std::thread([&] {
    for (const auto& [frame, size] : frames) FreeFrame(frame, size);
    void* const again = AllocateFrame(300);
    std::fill_n(static_cast<char*>(again), 300, 'y');
    FreeFrame(again, 300);
  }).join();
}

}  // namespace
}  // namespace fathom
