#include "router/fleet/waste_account.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using std::chrono::seconds;

constexpr TimePoint kBegin{seconds(1000)};
constexpr Duration kReach = WasteAccount::kReach;

TEST(WasteAccount, AddsUpSinceTheChange) {
  WasteAccount account;
  EXPECT_EQ(account.tokens(), 0u);
  account.Change(kBegin);
  for (int i = 0; i < 10; ++i) account.Add(5, kBegin + i * kReach);
  EXPECT_EQ(account.tokens(), 50u);
}

TEST(WasteAccount, ReachesBackBeforeTheChangeButNotFar) {
  for (const auto& [age, reaches] : {std::pair(seconds(0), true),
                                     {std::chrono::duration_cast<seconds>(kReach), true},
                                     {std::chrono::duration_cast<seconds>(2 * kReach), false}}) {
    WasteAccount account;
    account.Add(100, kBegin);
    account.Change(kBegin + age);
    EXPECT_EQ(account.tokens(), reaches ? 100u : 0u) << age.count();
  }
}

TEST(WasteAccount, ReachesBackAtLeastThatFarHoweverOftenItIsAdded) {
  WasteAccount account;
  TimePoint now = kBegin;
  for (; now <= kBegin + 10 * kReach; now += seconds(1)) account.Add(1, now);
  account.Change(now);
  EXPECT_GE(account.tokens(), static_cast<uint64_t>(kReach / seconds(1)));
  EXPECT_LE(account.tokens(), static_cast<uint64_t>(2 * kReach / seconds(1)) + 1);
}

TEST(WasteAccount, BlamesNothingTwice) {
  WasteAccount account;
  account.Add(100, kBegin);
  account.Change(kBegin);
  EXPECT_EQ(account.tokens(), 100u);
  account.Change(kBegin);
  EXPECT_EQ(account.tokens(), 0u);
}

}  // namespace
}  // namespace fathom
