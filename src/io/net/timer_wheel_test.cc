#include "io/net/timer_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/random.h"

namespace fathom {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr TimePoint kStart = TimePoint(std::chrono::hours(5));
constexpr Duration kTick = milliseconds(1);

// A timer that calls a function.
struct Alarm : Timer {
  explicit Alarm(std::function<void()> f) : Timer(&OnFire), work(std::move(f)) {}
  static void OnFire(Timer& timer) { static_cast<Alarm&>(timer).work(); }
  std::function<void()> work;
};

class TimerWheelTest : public testing::Test {
 protected:
  TimerWheel wheel_{kStart};
  int fired_ = 0;
  Alarm alarm_{[this] { ++fired_; }};
};

TEST_F(TimerWheelTest, FiresNeitherEarlyNorMoreThanATickLate) {
  for (const Duration offset : {Duration(0), Duration(1), Duration(microseconds(999)),
                                Duration(milliseconds(1)), Duration(microseconds(1500))}) {
    TimerWheel wheel(kStart);
    int fired = 0;
    Alarm alarm([&] { ++fired; });
    const TimePoint deadline = kStart + milliseconds(20) + offset;
    wheel.Arm(alarm, deadline);
    wheel.Advance(deadline - Duration(1));
    EXPECT_EQ(fired, 0) << offset.count();
    wheel.Advance(deadline + kTick);
    EXPECT_EQ(fired, 1) << offset.count();
    EXPECT_FALSE(alarm.armed());
  }
}

TEST_F(TimerWheelTest, FiresOnceOnly) {
  wheel_.Arm(alarm_, kStart + milliseconds(3));
  for (int i = 0; i < 3000; ++i) wheel_.Advance(kStart + milliseconds(i));
  EXPECT_EQ(fired_, 1);
}

TEST_F(TimerWheelTest, FiresADeadlineOfThePastWithTheNextTick) {
  wheel_.Advance(kStart + milliseconds(50));
  wheel_.Arm(alarm_, kStart - milliseconds(5));
  EXPECT_EQ(fired_, 0);
  wheel_.Advance(kStart + milliseconds(51));
  EXPECT_EQ(fired_, 1);
}

TEST_F(TimerWheelTest, KeepsOnlyTheLastOfTwoArmings) {
  wheel_.Arm(alarm_, kStart + milliseconds(5));
  wheel_.Arm(alarm_, kStart + milliseconds(500));
  wheel_.Advance(kStart + milliseconds(499));
  EXPECT_EQ(fired_, 0);
  wheel_.Advance(kStart + milliseconds(501));
  EXPECT_EQ(fired_, 1);
}

TEST_F(TimerWheelTest, TakesNeverAsDisarming) {
  wheel_.Arm(alarm_, kStart + milliseconds(5));
  wheel_.Arm(alarm_, kNever);
  EXPECT_FALSE(alarm_.armed());
  wheel_.Advance(kStart + milliseconds(5000));
  EXPECT_EQ(fired_, 0);
}

TEST_F(TimerWheelTest, ForgetsATimerThatIsDestroyed) {
  {
    Alarm brief([this] { ++fired_; });
    wheel_.Arm(brief, kStart + milliseconds(5));
  }
  wheel_.Advance(kStart + milliseconds(50));
  EXPECT_EQ(fired_, 0);
  EXPECT_EQ(wheel_.UntilNext(kStart + milliseconds(50)), std::nullopt);
}

TEST_F(TimerWheelTest, HoldsATimerThatIsManyTurnsAway) {
  const TimePoint deadline = kStart + milliseconds(10 * 1024 + 7);
  wheel_.Arm(alarm_, deadline);
  for (TimePoint now = kStart; now < deadline; now += milliseconds(13)) {
    wheel_.Advance(now);
    ASSERT_EQ(fired_, 0);
  }
  wheel_.Advance(deadline + kTick);
  EXPECT_EQ(fired_, 1);
}

TEST_F(TimerWheelTest, FiresEverythingThatIsDueAfterAJumpOfManyTurns) {
  std::vector<std::unique_ptr<Alarm>> alarms;
  for (int i = 0; i < 5000; ++i) {
    alarms.push_back(std::make_unique<Alarm>([this] { ++fired_; }));
    wheel_.Arm(*alarms.back(), kStart + milliseconds(i));
  }
  wheel_.Advance(kStart + milliseconds(4000));
  EXPECT_EQ(fired_, 4000);  // 0 to 3999; a timer for 4000 has until 4001
  wheel_.Advance(kStart + milliseconds(20000));
  EXPECT_EQ(fired_, 5000);
}

TEST_F(TimerWheelTest, LetsACallbackDisarmAnotherTimerThatIsDueInTheSameMoment) {
  Alarm victim([this] { fired_ += 100; });
  Alarm killer([&] { victim.Disarm(); });
  wheel_.Arm(killer, kStart + milliseconds(5));
  wheel_.Arm(victim, kStart + milliseconds(5));
  wheel_.Advance(kStart + milliseconds(10));
  EXPECT_EQ(fired_, 0);
}

TEST_F(TimerWheelTest, LetsACallbackDestroyAnotherTimerThatIsDueInTheSameMoment) {
  auto victim = std::make_unique<Alarm>([this] { fired_ += 100; });
  Alarm killer([&] { victim.reset(); });
  wheel_.Arm(killer, kStart + milliseconds(5));
  wheel_.Arm(*victim, kStart + milliseconds(5));
  wheel_.Arm(alarm_, kStart + milliseconds(5));
  wheel_.Advance(kStart + milliseconds(10));
  EXPECT_EQ(fired_, 1);
}

TEST_F(TimerWheelTest, DoesNotFireAgainInTheSameAdvanceWhatACallbackArmsForThePast) {
  alarm_.work = [this] {
    ++fired_;
    wheel_.Arm(alarm_, kStart);
  };
  wheel_.Arm(alarm_, kStart + milliseconds(1));
  wheel_.Advance(kStart + milliseconds(4000));
  EXPECT_EQ(fired_, 1);
  EXPECT_TRUE(alarm_.armed());
  wheel_.Advance(kStart + milliseconds(4001));
  EXPECT_EQ(fired_, 2);
}

TEST_F(TimerWheelTest, TellsHowLongNothingCanFire) {
  EXPECT_EQ(wheel_.UntilNext(kStart), std::nullopt);
  wheel_.Arm(alarm_, kStart + milliseconds(100));
  const auto wait = wheel_.UntilNext(kStart);
  ASSERT_TRUE(wait);
  EXPECT_GE(*wait, milliseconds(100));
  EXPECT_LE(*wait, milliseconds(101));
  EXPECT_EQ(wheel_.UntilNext(kStart + milliseconds(300)), Duration::zero());
  alarm_.Disarm();
  EXPECT_EQ(wheel_.UntilNext(kStart), std::nullopt);
}

TEST_F(TimerWheelTest, WaitsAtMostOneTurnForATimerThatIsFarAway) {
  wheel_.Arm(alarm_, kStart + std::chrono::hours(24));
  const auto wait = wheel_.UntilNext(kStart);
  ASSERT_TRUE(wait);
  EXPECT_LE(*wait, milliseconds(1024));
}

// The reference model of a wheel: simple enough to be obviously correct.
class NaiveTimers {
 public:
  void Arm(size_t timer, TimePoint deadline) { deadlines_[timer] = deadline; }
  void Disarm(size_t timer) { deadlines_.erase(timer); }
  const std::map<size_t, TimePoint>& armed() const { return deadlines_; }

 private:
  std::map<size_t, TimePoint> deadlines_;
};

// Random arming, disarming and passing of time: no timer fires early, none is forgotten, and a
// caller that sleeps for UntilNext() misses none.
TEST(TimerWheelProperty, AgreesWithANaiveModel) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    TimerWheel wheel(kStart);
    NaiveTimers model;
    TimePoint now = kStart;
    std::vector<size_t> fired;
    std::vector<std::unique_ptr<Alarm>> alarms;
    for (size_t i = 0; i < 64; ++i) {
      alarms.push_back(std::make_unique<Alarm>([&fired, i] { fired.push_back(i); }));
    }
    for (int step = 0; step < 2000; ++step) {
      const size_t which = random.Below(alarms.size());
      const uint64_t action = random.Below(10);
      if (action < 5) {
        const Duration far = microseconds(random.Below(action == 0 ? 5'000'000 : 50'000));
        wheel.Arm(*alarms[which], now + far);
        model.Arm(which, now + far);
      } else if (action == 5) {
        alarms[which]->Disarm();
        model.Disarm(which);
      } else {
        const auto wait = wheel.UntilNext(now);
        ASSERT_EQ(wait.has_value(), !model.armed().empty());
        Duration by = microseconds(random.Below(action == 9 ? 3'000'000 : 5'000));
        if (action == 6 && wait) by = *wait;
        now += by;
        fired.clear();
        wheel.Advance(now);
        for (const size_t i : fired) {
          ASSERT_TRUE(model.armed().contains(i)) << "fired though not armed";
          ASSERT_LE(model.armed().at(i), now) << "fired early";
          model.Disarm(i);
        }
        for (const auto& [i, deadline] : model.armed()) {
          ASSERT_GT(deadline + 2 * kTick, now) << "forgotten or late";
          ASSERT_TRUE(alarms[i]->armed());
        }
      }
    }
  }
}

}  // namespace
}  // namespace fathom
