#include "lab/bench/trace_operations.h"

#include <gtest/gtest.h>

#include <map>

namespace fathom {
namespace {

using Kind = IndexOperation::Kind;
using Plan = TraceOperationsPlan;

TraceRequest Asks(std::vector<uint64_t> ids, uint32_t input, uint32_t output = 1) {
  return {.at = {}, .input = input, .output = output, .ids = std::move(ids)};
}

std::vector<Kind> KindsOf(const OperationList& list) {
  std::vector<Kind> kinds;
  for (size_t i = 0; i < list.size(); ++i) kinds.push_back(list[i].kind);
  return kinds;
}

TEST(TraceOperations, StoresOnlyWhatTheCacheDidNotHave) {
  const auto list = OperationsOf({Asks({1}, 512), Asks({1, 2}, 1024)}, Plan{.ranks = 1});
  ASSERT_EQ(KindsOf(list), (std::vector{Kind::kQuery, Kind::kStored, Kind::kQuery, Kind::kStored}));
  EXPECT_EQ(list[0].blocks(), 32u);
  EXPECT_EQ(list[1].blocks(), 32u);
  EXPECT_FALSE(list[1].parent);
  EXPECT_EQ(list[2].blocks(), 64u);
  EXPECT_TRUE(std::ranges::equal(list[2].words.first(32), list[0].words));
  EXPECT_EQ(list[3].blocks(), 32u);
  EXPECT_EQ(list[3].parent, list[1].words[62]);  // the engine hash of the 32nd block
}

TEST(TraceOperations, StoresTheBlockOfTheLastTokenAgain) {
  const auto list = OperationsOf({Asks({1}, 512), Asks({1}, 512)}, Plan{.ranks = 1});
  EXPECT_EQ(list.stored_blocks(), 33u);
}

TEST(TraceOperations, RemovesWhatTheCacheEvictsBeforeItStores) {
  const auto list = OperationsOf({Asks({1}, 512), Asks({2}, 512)}, Plan{.ranks = 1, .blocks = 48});
  ASSERT_EQ(KindsOf(list), (std::vector{Kind::kQuery, Kind::kStored, Kind::kQuery, Kind::kRemoved,
                                        Kind::kStored}));
  EXPECT_EQ(list[3].blocks(), 16u);
  EXPECT_EQ(list[3].words[0], list[1].words[62]);  // the end of the first prompt goes first
}

TEST(TraceOperations, OnlyAsksForAPromptThatFitsNoCache) {
  const auto list = OperationsOf({Asks({1}, 512)}, Plan{.ranks = 1, .blocks = 31});
  EXPECT_EQ(KindsOf(list), (std::vector{Kind::kQuery}));
}

TEST(TraceOperations, StoresGeneratedBlocksOneByOne) {
  const auto list = OperationsOf({Asks({1}, 40, 50)}, Plan{.ranks = 1, .generated = true});
  ASSERT_EQ(KindsOf(list), (std::vector{Kind::kQuery, Kind::kStored, Kind::kStored, Kind::kStored,
                                        Kind::kStored}));
  EXPECT_EQ(list[1].blocks(), 2u);  // and 8 tokens, which with 50 more fill three blocks
  EXPECT_EQ(list[4].blocks(), 1u);
  EXPECT_EQ(list[4].parent, list[3].words[0]);
}

TEST(TraceOperations, DealsRequestsInTurnOrToWhereTheirPrefixIs) {
  const std::vector<TraceRequest> trace = {Asks({1, 2}, 1024), Asks({3}, 512), Asks({4}, 512),
                                           Asks({1, 2, 5}, 1536)};
  const auto ranks = [&](Plan::Assign assign) {
    std::vector<uint32_t> found;
    const auto list = OperationsOf(trace, Plan{.ranks = 2, .assign = assign});
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind == Kind::kStored) found.push_back(list[i].rank);
    }
    return found;
  };
  EXPECT_EQ(ranks(Plan::Assign::kRoundRobin), (std::vector<uint32_t>{0, 1, 0, 1}));
  EXPECT_EQ(ranks(Plan::Assign::kSticky), (std::vector<uint32_t>{0, 1, 0, 0}));
}

TEST(TraceOperations, SharesNothingBetweenRepetitions) {
  const auto list = OperationsOf({Asks({0}, 512)}, Plan{.ranks = 1, .repeat = 2});
  EXPECT_EQ(list.stored_blocks(), 64u);
}

TEST(TraceOperations, NeverRemovesABlockMoreOftenThanItWasStored) {
  std::vector<TraceRequest> trace;
  for (uint64_t i = 0; i < 200; ++i) trace.push_back(Asks({i % 7, 100 + i % 13}, 1000));
  const auto list = OperationsOf(trace, Plan{.ranks = 3, .blocks = 150});
  EXPECT_GT(list.removed_blocks(), 0u);
  std::map<std::pair<uint32_t, uint64_t>, int> held;
  for (size_t i = 0; i < list.size(); ++i) {
    const IndexOperation operation = list[i];
    for (size_t w = 0; operation.kind == Kind::kStored && w < operation.words.size(); w += 2) {
      ++held[{operation.rank, operation.words[w]}];
    }
    if (operation.kind != Kind::kRemoved) continue;
    for (const uint64_t hash : operation.words) {
      EXPECT_GE(--held[std::pair(operation.rank, hash)], 0);
    }
  }
}

}  // namespace
}  // namespace fathom
