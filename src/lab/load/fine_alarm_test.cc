#include "lab/load/fine_alarm.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "testing/loop_thread.h"

namespace fathom {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

struct Waits {
  Loop loop;
  FineAlarm alarm{loop};
  std::vector<IoStatus> ends;
  std::vector<Duration> late;

  Task<void> Every(Duration gap, int times) {
    TimePoint due = loop.now();
    for (int i = 0; i < times; ++i) {
      due += gap;
      const IoStatus end = co_await alarm.Until(due);
      ends.push_back(end);
      late.push_back(loop.now() - due);
    }
  }

  void Run(Duration gap, int times) {
    RunToEnd(loop, [&] { return Every(gap, times); });
  }
};

TEST(FineAlarm, GoesOffEveryTimeAndNeverEarly) {
  Waits waits;
  waits.Run(microseconds(200), 100);
  EXPECT_EQ(waits.ends, std::vector<IoStatus>(100, IoStatus::kOk));
  for (const Duration late : waits.late) EXPECT_GE(late, Duration::zero());
}

TEST(FineAlarm, EndsWhenCancelled) {
  Waits waits;
  waits.loop.Post([&] { waits.loop.Post([&] { waits.alarm.Cancel(); }); });
  waits.Run(seconds(100), 1);
  EXPECT_EQ(waits.ends, std::vector<IoStatus>{IoStatus::kCancelled});
}

}  // namespace
}  // namespace fathom
