#include "router/fleet/circuit_breaker.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart = TimePoint(std::chrono::hours(1));

// Threshold 3, open for 5 seconds. Each letter is an event at the time it names:
//   s success, f failure, t trial sent, x trip; then it must (+) or must not (-) allow a request.
struct BreakerRow {
  const char* name;
  struct Step {
    char event;
    int at;  // seconds
    char allowed;
  };
  std::vector<Step> steps;
};

class CircuitBreakerTable : public testing::TestWithParam<BreakerRow> {};

TEST_P(CircuitBreakerTable, Holds) {
  CircuitBreaker breaker(3, seconds(5));
  EXPECT_TRUE(breaker.Allows(kStart));
  size_t number = 0;
  for (const auto& step : GetParam().steps) {
    const TimePoint now = kStart + seconds(step.at);
    if (step.event == 's') breaker.OnSuccess();
    if (step.event == 'f') breaker.OnFailure(now);
    if (step.event == 't') breaker.OnSend(now);
    if (step.event == 'x') breaker.Trip(now);
    EXPECT_EQ(breaker.Allows(now), step.allowed == '+')
        << "step " << number << " '" << step.event << "' at " << step.at;
    ++number;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, CircuitBreakerTable,
    testing::Values(
        BreakerRow{"StaysClosedBelowTheThreshold", {{'f', 0, '+'}, {'f', 0, '+'}, {'-', 100, '+'}}},
        BreakerRow{"OpensAtTheThreshold",
                   {{'f', 0, '+'}, {'f', 0, '+'}, {'f', 0, '-'}, {'-', 4, '-'}, {'-', 5, '+'}}},
        BreakerRow{"CountsOnlyFailuresInARow",
                   {{'f', 0, '+'}, {'f', 0, '+'}, {'s', 0, '+'}, {'f', 0, '+'}, {'f', 0, '+'}}},
        BreakerRow{"LetsOneTrialThroughAtATime",
                   {{'x', 0, '-'}, {'-', 5, '+'}, {'t', 5, '-'}, {'-', 9, '-'}, {'-', 10, '+'}}},
        BreakerRow{"ClosesWhenTheTrialSucceeds",
                   {{'x', 0, '-'}, {'t', 5, '-'}, {'s', 6, '+'}, {'f', 6, '+'}, {'f', 6, '+'}}},
        BreakerRow{"OpensForTwiceAsLongWhenTheTrialFails",
                   {{'x', 0, '-'},
                    {'t', 5, '-'},
                    {'f', 5, '-'},
                    {'-', 14, '-'},
                    {'-', 15, '+'},
                    {'t', 15, '-'},
                    {'f', 15, '-'},
                    {'-', 34, '-'},
                    {'-', 35, '+'}}},
        BreakerRow{"TripsWhateverTheCount", {{'x', 7, '-'}, {'-', 11, '-'}, {'-', 12, '+'}}},
        BreakerRow{"ForgetsATrialThatSucceeded",
                   {{'x', 0, '-'},
                    {'t', 5, '-'},
                    {'s', 5, '+'},
                    {'f', 6, '+'},
                    {'f', 6, '+'},
                    {'f', 6, '-'},
                    {'f', 6, '-'},
                    {'-', 11, '+'}}},
        BreakerRow{"IsNotPunishedForWhatWasSentBeforeItOpened",
                   {{'f', 0, '+'},
                    {'f', 0, '+'},
                    {'f', 0, '-'},
                    {'f', 0, '-'},
                    {'f', 1, '-'},
                    {'f', 1, '-'},
                    {'f', 1, '-'},
                    {'f', 1, '-'},
                    {'-', 6, '+'}}}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(CircuitBreaker, IsNeverOpenForMoreThanAMinute) {
  CircuitBreaker breaker(1, seconds(5));
  TimePoint now = kStart;
  for (int i = 0; i < 100; ++i) {
    breaker.OnSend(now);
    breaker.OnFailure(now);
    EXPECT_FALSE(breaker.Allows(now + seconds(4)));
    now += CircuitBreaker::kMaxOpen;
    ASSERT_TRUE(breaker.Allows(now)) << i;
  }
  EXPECT_FALSE(breaker.Allows(now - milliseconds(1)));
}

TEST(CircuitBreaker, StaysUsableWhenATrialIsNeverDecided) {
  CircuitBreaker breaker(1, seconds(5));
  breaker.Trip(kStart);
  TimePoint now = kStart;
  for (int i = 0; i < 5; ++i) {
    now += seconds(5);
    ASSERT_TRUE(breaker.Allows(now));
    breaker.OnSend(now);  // and its client disconnects
    ASSERT_FALSE(breaker.Allows(now));
  }
}

TEST(CircuitBreaker, ShowsThatItHasOpenedOrClosed) {
  const auto pulse = std::make_shared<FleetPulse>();
  CircuitBreaker breaker(2, seconds(5), pulse);
  breaker.OnSuccess();
  breaker.OnFailure(kStart);
  EXPECT_EQ(pulse->breakers, 0u);
  breaker.OnFailure(kStart);
  EXPECT_EQ(pulse->breakers, 1u);
  breaker.OnFailure(kStart);
  breaker.Trip(kStart);
  EXPECT_EQ(pulse->breakers, 1u) << "it was open";
  breaker.OnSuccess();
  EXPECT_EQ(pulse->breakers, 2u);
  breaker.Trip(kStart);
  EXPECT_EQ(pulse->breakers, 3u);
}

}  // namespace
}  // namespace fathom
