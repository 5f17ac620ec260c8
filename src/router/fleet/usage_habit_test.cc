#include "router/fleet/usage_habit.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

uint32_t AskedOf(UsageHabit& habit, uint32_t streams) {
  uint32_t asked = 0;
  for (uint32_t i = 0; i < streams; ++i) asked += habit.Next().ask ? 1 : 0;
  return asked;
}

TEST(UsageHabit, AsksNobodyWhoIsNotKnown) {
  UsageHabit habit;
  EXPECT_EQ(AskedOf(habit, 1000), 0u);
}

TEST(UsageHabit, AsksAfterAStreamThatToldNothingUnasked) {
  UsageHabit habit;
  habit.LearnUnasked(habit.Next(), false, true);
  const UsageHabit::Plan plan = habit.Next();
  EXPECT_TRUE(plan.ask);
  EXPECT_TRUE(plan.null_unasked);
}

TEST(UsageHabit, NeverAsksAnEngineThatTellsUnasked) {
  UsageHabit habit;
  habit.LearnUnasked(habit.Next(), true, false);
  EXPECT_EQ(AskedOf(habit, 1000), 0u);
}

TEST(UsageHabit, LeavesAStreamAloneNowAndThenAndBelievesIt) {
  UsageHabit habit;
  habit.LearnUnasked(habit.Next(), false, false);
  EXPECT_EQ(AskedOf(habit, UsageHabit::kLeftAlone), UsageHabit::kLeftAlone - 1);
  habit.LearnUnasked(habit.Next(), true, false);
  EXPECT_EQ(AskedOf(habit, 1000), 0u);
}

TEST(UsageHabit, SeldomAsksAnEngineWithoutDetailsUntilItHasSome) {
  UsageHabit habit;
  habit.LearnUnasked(habit.Next(), false, false);
  for (uint16_t i = 0; i < UsageHabit::kPatience; ++i) {
    EXPECT_TRUE(habit.Next().ask);
    habit.LearnAsked(habit.Next(), false);
  }
  EXPECT_EQ(AskedOf(habit, 10 * UsageHabit::kSeldom), 10u);
  habit.LearnAsked(habit.Next(), true);
  EXPECT_GT(AskedOf(habit, UsageHabit::kSeldom), UsageHabit::kSeldom / 2);
}

TEST(UsageHabit, OneAnswerWithDetailsMakesUpForThoseWithout) {
  UsageHabit habit;
  habit.LearnUnasked(habit.Next(), false, false);
  for (uint16_t i = 0; i < 4 * UsageHabit::kPatience; ++i) {
    habit.LearnAsked(habit.Next(), i % UsageHabit::kPatience == 0);
    EXPECT_TRUE(habit.Next().ask) << i;
  }
}

TEST(UsageHabit, ForgetsAndLearnsNothingFromStreamsOfAnEarlierLife) {
  UsageHabit habit;
  const UsageHabit::Plan before = habit.Next();
  habit.LearnUnasked(before, false, true);
  habit.Reset();
  EXPECT_FALSE(habit.Next().ask);
  EXPECT_FALSE(habit.Next().null_unasked);
  habit.LearnUnasked(before, false, true);
  EXPECT_FALSE(habit.Next().ask);
  habit.LearnUnasked(habit.Next(), false, false);
  EXPECT_TRUE(habit.Next().ask);
}

}  // namespace
}  // namespace fathom
