#include "router/routing/response_pins.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace fathom {
namespace {

using std::chrono::seconds;

constexpr TimePoint kPinsBegin = TimePoint(std::chrono::hours(1));
constexpr WorkerId kPinnedOne = WorkerId(1);
constexpr WorkerId kPinnedTwo = WorkerId(2);

TEST(ResponsePins, NamesTheWorkerThatHasAResponse) {
  ResponsePins pins(7);
  EXPECT_FALSE(pins.Find("resp_1", kPinsBegin));
  pins.Remember("resp_1", kPinnedOne, kPinsBegin);
  pins.Remember("resp_2", kPinnedTwo, kPinsBegin);
  EXPECT_EQ(pins.Find("resp_1", kPinsBegin), (ResponsePins::Pin{kPinnedOne}));
  EXPECT_EQ(pins.Find("resp_2", kPinsBegin), (ResponsePins::Pin{kPinnedTwo}));
  EXPECT_EQ(pins.size(), 2u);
}

TEST(ResponsePins, RememberTheConversation) {
  ResponsePins pins(7);
  pins.SetContext("resp_1", {kPinnedOne, 1, 5});
  EXPECT_FALSE(pins.Find("resp_1", kPinsBegin)) << "an id that is not pinned has none";
  pins.Remember("resp_1", kPinnedOne, kPinsBegin);
  pins.SetContext("resp_1", {kPinnedOne, 3, 1234});
  pins.SetContext("resp_1", {kPinnedTwo, 4, 99});
  EXPECT_EQ(pins.Find("resp_1", kPinsBegin), (ResponsePins::Pin{kPinnedOne, 3, 1234}));
}

TEST(ResponsePins, AnotherWorkerCannotTakeAnIdOver) {
  ResponsePins pins(7);
  pins.Remember("resp_1", kPinnedOne, kPinsBegin);
  pins.SetContext("resp_1", {kPinnedOne, 0, 10});
  pins.Remember("resp_1", kPinnedTwo, kPinsBegin);
  EXPECT_EQ(pins.Find("resp_1", kPinsBegin), (ResponsePins::Pin{kPinnedOne, 0, 10}));
  pins.Forget("resp_1", kPinnedTwo);
  EXPECT_TRUE(pins.Find("resp_1", kPinsBegin));
  pins.Forget("resp_1", kPinnedOne);
  EXPECT_FALSE(pins.Find("resp_1", kPinsBegin));
  pins.Remember("resp_1", kPinnedTwo, kPinsBegin);
  EXPECT_EQ(pins.Find("resp_1", kPinsBegin)->worker, kPinnedTwo);
}

TEST(ResponsePins, ExpireWhenTheyAreNotUsed) {
  ResponsePins pins(7);
  pins.Remember("resp_1", kPinnedOne, kPinsBegin);
  pins.Remember("resp_2", kPinnedOne, kPinsBegin);
  EXPECT_TRUE(pins.Find("resp_1", kPinsBegin + ResponsePins::kTtl - seconds(1)));
  EXPECT_FALSE(pins.Find("resp_2", kPinsBegin + ResponsePins::kTtl));
  EXPECT_TRUE(pins.Find("resp_1", kPinsBegin + ResponsePins::kTtl)) << "its time began anew";
}

TEST(ResponsePins, IgnoreIdsThatAreTooLong) {
  ResponsePins pins(7);
  const std::string longest(ResponsePins::kLongestId, 'x');
  pins.Remember(longest, kPinnedOne, kPinsBegin);
  pins.Remember(longest + 'x', kPinnedOne, kPinsBegin);
  pins.Remember("", kPinnedOne, kPinsBegin);
  EXPECT_EQ(pins.size(), 1u);
  EXPECT_TRUE(pins.Find(longest, kPinsBegin));
}

TEST(ResponsePins, DropTheOldestWhenTheyAreTooMany) {
  ResponsePins pins(7);
  const size_t total = ResponsePins::kMostResponses + ResponsePins::kMostResponses / 4;
  for (size_t i = 0; i < total; ++i) {
    pins.Remember("resp_" + std::to_string(i), kPinnedOne, kPinsBegin + Duration(i));
  }
  EXPECT_LE(pins.size(), ResponsePins::kMostResponses);
  EXPECT_GT(pins.size(), ResponsePins::kMostResponses / 10 * 9);
  const TimePoint now = kPinsBegin + Duration(total);
  EXPECT_FALSE(pins.Find("resp_0", now));
  EXPECT_TRUE(pins.Find("resp_" + std::to_string(total - 1), now));
}

TEST(ResponsePins, CanBeUsedByManyThreads) {
  ResponsePins pins(7);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const std::string id = std::to_string(i % 100);
        pins.Remember(id, WorkerId(t), kPinsBegin);
        pins.SetContext(id, {WorkerId(t), 0, 5});
        if (i % 7 == 0) pins.Forget(id, WorkerId(t));
        const auto found = pins.Find(id, kPinsBegin);
        if (found) {
          ASSERT_LT(found->worker.value(), 4u);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(pins.size(), 100u);
}

}  // namespace
}  // namespace fathom
