#include "router/fleet/waste_account.h"

#include <gtest/gtest.h>

#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::seconds;

constexpr Duration kReach = WasteAccount::kReach;

TEST(WasteAccount, AddsUpSinceTheChange) {
  WasteAccount account;
  EXPECT_EQ(account.tokens(), 0u);
  account.Change(kTestBegin);
  for (int i = 0; i < 10; ++i) account.Add(5, kTestBegin + i * kReach);
  EXPECT_EQ(account.tokens(), 50u);
}

TEST(WasteAccount, ReachesBackBeforeTheChangeButNotFar) {
  for (const auto& [age, reaches] : {std::pair(seconds(0), true),
                                     {std::chrono::duration_cast<seconds>(kReach), true},
                                     {std::chrono::duration_cast<seconds>(2 * kReach), false}}) {
    WasteAccount account;
    account.Add(100, kTestBegin);
    account.Change(kTestBegin + age);
    EXPECT_EQ(account.tokens(), reaches ? 100u : 0u) << age.count();
  }
}

TEST(WasteAccount, ReachesBackAtLeastThatFarHoweverOftenItIsAdded) {
  WasteAccount account;
  TimePoint now = kTestBegin;
  for (; now <= kTestBegin + 10 * kReach; now += seconds(1)) account.Add(1, now);
  account.Change(now);
  EXPECT_GE(account.tokens(), static_cast<uint64_t>(kReach / seconds(1)));
  EXPECT_LE(account.tokens(), static_cast<uint64_t>(2 * kReach / seconds(1)) + 1);
}

TEST(WasteAccount, BlamesNothingTwice) {
  WasteAccount account;
  account.Add(100, kTestBegin);
  account.Change(kTestBegin);
  EXPECT_EQ(account.tokens(), 100u);
  account.Change(kTestBegin);
  EXPECT_EQ(account.tokens(), 0u);
}

}  // namespace
}  // namespace fathom
