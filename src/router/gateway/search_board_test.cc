#include "router/gateway/search_board.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

using FoundAs = SearchResult::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kBoardBegin = TimePoint(std::chrono::hours(1));

TEST(SearchBoard, OneSearchIsLedAndTheOthersWaitForIt) {
  SearchBoard board(7);
  const auto first = board.Join("resp_1", "m", 2, kBoardBegin);
  EXPECT_TRUE(first.leads);
  const auto second = board.Join("resp_1", "m", 2, kBoardBegin);
  EXPECT_FALSE(second.leads);
  EXPECT_EQ(second.search, first.search);
  EXPECT_TRUE(board.Join("resp_2", "m", 2, kBoardBegin).leads);
  EXPECT_TRUE(board.Join("resp_1", "other", 2, kBoardBegin).leads) << "among other workers";
}

TEST(SearchBoard, AResultStandsForAWhile) {
  SearchBoard board(7);
  const SearchResult found{FoundAs::kFound, WorkerId(5)};
  const SearchResult nowhere{FoundAs::kNowhere};
  board.Close(*board.Join("a", "m", 1, kBoardBegin).search, found, kBoardBegin);
  board.Close(*board.Join("b", "m", 1, kBoardBegin).search, nowhere, kBoardBegin);
  const TimePoint later = kBoardBegin + SearchBoard::kRemembered;
  EXPECT_EQ(board.Join("a", "m", 1, later - milliseconds(1)).known, found);
  EXPECT_EQ(board.Join("b", "m", 1, later - milliseconds(1)).known, nowhere);
  EXPECT_TRUE(board.Join("b", "m", 1, later).leads);
}

TEST(SearchBoard, WorkersThatDidNotAnswerAreAskedAgain) {
  SearchBoard board(7);
  const auto turn = board.Join("a", "m", 1, kBoardBegin);
  board.Close(*turn.search, {FoundAs::kUnanswered}, kBoardBegin);
  EXPECT_TRUE(board.Join("a", "m", 1, kBoardBegin).leads);
}

// The bound that docs/routing.md states.
TEST(SearchBoard, AFloodOfIdsIsRefused) {
  SearchBoard board(7);
  size_t led = 0;
  size_t refused = 0;
  const auto flood = [&](TimePoint now) {
    for (int i = 0; i < 1000; ++i) {
      const auto turn = board.Join(std::to_string(led + refused), "m", 8, now);
      if (turn.leads) board.Close(*turn.search, {FoundAs::kNowhere}, now);
      led += turn.leads ? 1 : 0;
      refused += turn.known == SearchResult{FoundAs::kOverload} ? 1 : 0;
    }
  };
  flood(kBoardBegin);
  EXPECT_EQ(led, static_cast<size_t>(SearchBoard::kBurst));
  EXPECT_EQ(refused, 1000 - led);
  led = 0;
  flood(kBoardBegin + seconds(1));
  EXPECT_EQ(led, static_cast<size_t>(SearchBoard::kPerSecond));
}

TEST(SearchBoard, ALargeFleetIsAskedLessOften) {
  SearchBoard board(7);
  size_t led = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto turn = board.Join(std::to_string(i), "m", 4 * SearchBoard::kFleetUnit, kBoardBegin);
    if (!turn.leads) continue;
    ++led;
    board.Close(*turn.search, {FoundAs::kNowhere}, kBoardBegin);
  }
  EXPECT_EQ(led, static_cast<size_t>(SearchBoard::kBurst) / 5);
}

TEST(SearchBoard, OnlySoManySearchesAreOpen) {
  SearchBoard board(7);
  size_t led = 0;
  for (int i = 0; i < 100; ++i) {
    led += board.Join(std::to_string(i), "m", 1, kBoardBegin).leads ? 1 : 0;
  }
  EXPECT_EQ(led, SearchBoard::kMostOpen);
}

}  // namespace
}  // namespace fathom
