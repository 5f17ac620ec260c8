#include "router/gateway/retry_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace fathom {
namespace {

int WithdrawAll(RetryBudget& budget) {
  int count = 0;
  while (budget.TryWithdraw()) ++count;
  return count;
}

TEST(RetryBudget, LetsAQuietRouterRetryATaste) {
  RetryBudget budget(0.2);
  EXPECT_EQ(WithdrawAll(budget), 10);
  EXPECT_FALSE(budget.TryWithdraw());
}

TEST(RetryBudget, AllowsTheGivenFractionOfTheRequests) {
  RetryBudget budget(0.2);
  WithdrawAll(budget);
  int retries = 0;
  for (int i = 0; i < 1000; ++i) {
    budget.OnRequest();
    retries += budget.TryWithdraw();
  }
  EXPECT_EQ(retries, 200);
}

TEST(RetryBudget, SavesNoMoreThanItMay) {
  RetryBudget budget(1);
  for (int i = 0; i < 10'000; ++i) budget.OnRequest();
  EXPECT_EQ(WithdrawAll(budget), 100);
}

TEST(RetryBudget, NeverFillsUpWithoutARatio) {
  RetryBudget budget(0);
  EXPECT_EQ(WithdrawAll(budget), 10);
  for (int i = 0; i < 1000; ++i) budget.OnRequest();
  EXPECT_FALSE(budget.TryWithdraw());
}

TEST(RetryBudget, IsNotOverdrawnByThreads) {
  RetryBudget budget(1);
  for (int i = 0; i < 1000; ++i) budget.OnRequest();
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { taken += WithdrawAll(budget); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(taken, 100);
}

}  // namespace
}  // namespace fathom
