#include "router/routing/session_affinity.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <string>
#include <thread>
#include <vector>

#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr uint64_t kSecret = 5;

TEST(SessionAffinity, RemembersTheLastWorkerOfASession) {
  SessionAffinity affinity(minutes(10), kSecret);
  EXPECT_EQ(affinity.Find("s", kTestBegin), std::nullopt);
  affinity.Remember("s", WorkerId(1), kTestBegin);
  affinity.Remember("other", WorkerId(2), kTestBegin);
  EXPECT_EQ(affinity.Find("s", kTestBegin), WorkerId(1));
  affinity.Remember("s", WorkerId(3), kTestBegin);
  EXPECT_EQ(affinity.Find("s", kTestBegin), WorkerId(3));
  EXPECT_EQ(affinity.Find("other", kTestBegin), WorkerId(2));
  EXPECT_EQ(affinity.size(), 2u);
}

TEST(SessionAffinity, ForgetsASessionThatHasBeenSilentForTheTtl) {
  SessionAffinity affinity(seconds(10), kSecret);
  affinity.Remember("s", WorkerId(1), kTestBegin);
  EXPECT_TRUE(affinity.Find("s", kTestBegin + seconds(10) - Duration(1)));
  affinity.Remember("s", WorkerId(1), kTestBegin + seconds(9));
  EXPECT_TRUE(affinity.Find("s", kTestBegin + seconds(18))) << "each use starts its time anew";
  EXPECT_FALSE(affinity.Find("s", kTestBegin + seconds(19)));
  EXPECT_EQ(affinity.size(), 0u);
}

TEST(SessionAffinity, IsOffWithoutATtl) {
  SessionAffinity affinity(Duration::zero(), kSecret);
  EXPECT_FALSE(affinity.enabled());
  affinity.Remember("s", WorkerId(1), kTestBegin);
  EXPECT_FALSE(affinity.Find("s", kTestBegin));
  EXPECT_TRUE(SessionAffinity(seconds(1), kSecret).enabled());
}

TEST(SessionAffinity, MakesRoomByForgettingTheOnesThatWereSilentLongest) {
  SessionAffinity affinity(std::chrono::hours(100), kSecret);
  // Sessions that all fall into one of the sixteen shards, so that not all of them must be filled.
  const size_t most = SessionAffinity::kMaxSessions / 16;
  const size_t total = most + most / 4;
  std::vector<std::string> names;
  for (size_t i = 0; names.size() < total; ++i) {
    std::string name = std::to_string(i);
    if (XXH3_64bits_withSeed(name.data(), name.size(), kSecret) % 16 == 0)
      names.push_back(std::move(name));
  }
  for (size_t i = 0; i < total; ++i) {
    affinity.Remember(names[i], WorkerId(i), kTestBegin + Duration(i));
    // The first is used all the time.
    if (i % 1000 == 0) affinity.Remember(names[0], WorkerId(0), kTestBegin + Duration(i));
  }
  EXPECT_EQ(affinity.size(), most);
  const TimePoint now = kTestBegin + Duration(total);
  EXPECT_TRUE(affinity.Find(names[0], now));
  size_t old = 0;
  size_t young = 0;
  for (size_t i = 1; i <= 1000; ++i) {
    old += affinity.Find(names[i], now).has_value();
    young += affinity.Find(names[total - i], now).has_value();
  }
  EXPECT_EQ(old, 0u);
  EXPECT_EQ(young, 1000u);
}

TEST(SessionAffinity, LetsGoOfExpiredSessionsAsNewOnesCome) {
  SessionAffinity affinity(seconds(1), kSecret);
  for (int i = 0; i < 1000; ++i)
    affinity.Remember("a" + std::to_string(i), WorkerId(1), kTestBegin);
  EXPECT_EQ(affinity.size(), 1000u);
  for (int i = 0; i < 1000; ++i) {
    affinity.Remember("b" + std::to_string(i), WorkerId(1), kTestBegin + seconds(5));
  }
  EXPECT_EQ(affinity.size(), 1000u);
}

TEST(SessionAffinity, CanBeUsedByManyThreads) {
  SessionAffinity affinity(minutes(1), kSecret);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const std::string session = std::to_string(i % 100);
        affinity.Remember(session, WorkerId(t), kTestBegin);
        const auto found = affinity.Find(session, kTestBegin);
        ASSERT_TRUE(found);
        ASSERT_LT(found->value(), 4u);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(affinity.size(), 100u);
}

}  // namespace
}  // namespace fathom
