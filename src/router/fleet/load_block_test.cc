#include "router/fleet/load_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"
#include "router/fleet/rank_load.h"
#include "testing/test_clock.h"

namespace fathom {
namespace {

constexpr double kMillisecondUnit = 1e6;

TEST(LoadBlock, HasTheLeastOfEachNumber) {
  LoadBlock block;
  EXPECT_FALSE(block.Free());
  const auto first = block.Enter({.backlog = 5, .context = 70, .requests = 2, .waiting = 1});
  block.Enter({.backlog = 8, .context = 30, .requests = 3, .waiting = 2, .silent = true});
  block.Enter({.backlog = 0, .context = 10, .requests = 1});
  EXPECT_EQ(block.Queued(), (LoadFloor{5, 30, 2}));
  EXPECT_EQ(block.Free(), (LoadFloor{0, 10, 1}));
  EXPECT_EQ(block.waiting(), 3u);
  EXPECT_EQ(block.silent(), 1u);
  block.Update(*first, {.backlog = 9, .context = 20, .requests = 4});
  EXPECT_EQ(block.Queued(), (LoadFloor{8, 20, 3}));
  EXPECT_EQ(block.waiting(), 2u);
  block.Update(*first, {.backlog = 0, .context = 20, .requests = 4});
  EXPECT_EQ(block.Queued(), (LoadFloor{8, 30, 3}));
  block.Leave(*first);
  EXPECT_EQ(block.Free(), (LoadFloor{0, 10, 1}));
  EXPECT_EQ(block.ranks(), 2u);
}

TEST(LoadBlock, TakesAsManyRanksAsItCan) {
  LoadBlock block;
  for (size_t i = 0; i < LoadBlock::kMost; ++i) EXPECT_TRUE(block.Enter({}));
  EXPECT_FALSE(block.Enter({}));
  block.Leave(3);
  EXPECT_EQ(block.Enter({}), 3u);
}

TEST(LoadBlockProperty, AgreesWithAPlainList) {
  Random random(3);
  LoadBlock block;
  std::map<size_t, LoadShare> ranks;
  for (int step = 0; step < 20'000; ++step) {
    const LoadShare share{.backlog = static_cast<double>(random.Below(5)),
                          .context = random.Below(5),
                          .requests = static_cast<uint32_t>(random.Below(3)),
                          .waiting = static_cast<uint32_t>(random.Below(3)),
                          .silent = random.Below(4) == 0};
    const size_t place = random.Below(LoadBlock::kMost);
    if (!ranks.contains(place)) {
      if (const auto entered = block.Enter(share)) ranks[*entered] = share;
    } else if (random.Below(3) == 0) {
      block.Leave(place);
      ranks.erase(place);
    } else {
      block.Update(place, share);
      ranks[place] = share;
    }
    std::optional<LoadFloor> free;
    std::optional<LoadFloor> queued;
    uint64_t waiting = 0;
    uint32_t silent = 0;
    for (const auto& [at, rank] : ranks) {
      std::optional<LoadFloor>& least = rank.backlog > 0 ? queued : free;
      if (!least) least = LoadFloor{rank.backlog, rank.context, rank.requests};
      least->backlog = std::min(least->backlog, rank.backlog);
      least->context = std::min(least->context, rank.context);
      least->requests = std::min(least->requests, rank.requests);
      waiting += rank.waiting;
      silent += rank.silent ? 1 : 0;
    }
    ASSERT_EQ(block.Free(), free);
    ASSERT_EQ(block.Queued(), queued);
    ASSERT_EQ(block.waiting(), waiting);
    ASSERT_EQ(block.silent(), silent);
    ASSERT_EQ(block.ranks(), ranks.size());
  }
}

TEST(LoadBoard, PutsRanksOfAGroupTogetherAndFillsGaps) {
  LoadBoard board;
  std::vector<std::unique_ptr<RankLoad>> ranks;
  for (size_t i = 0; i < 2 * LoadBlock::kMost; ++i) {
    ranks.push_back(std::make_unique<RankLoad>());
    ranks.back()->Stand(board, i % 2 == 0 ? "even" : "odd");
  }
  EXPECT_EQ(ranks[0]->block(), ranks[2 * LoadBlock::kMost - 2]->block());
  EXPECT_NE(ranks[0]->block(), ranks[1]->block());
  EXPECT_EQ(ranks[0]->block()->ranks(), LoadBlock::kMost);
  RankLoad late;
  late.Stand(board, "even");
  EXPECT_NE(late.block(), ranks[0]->block()) << "it is full";
  ranks.erase(ranks.begin());
  RankLoad later;
  later.Stand(board, "odd");
  EXPECT_NE(later.block(), ranks[0]->block()) << "it is full";
  late.Stand(board, "odd");
  EXPECT_EQ(late.block(), later.block());
}

// Whatever happens on a rank, here or by another replica, at any time its backlog is not below the
// block's.
TEST(LoadBoardProperty, ABlockIsNeverAboveItsRanks) {
  Random random(5);
  LoadBoard board;
  std::vector<std::unique_ptr<RankLoad>> ranks;
  struct Request {
    RankLoad::Stay stay;
    size_t rank = 0;
  };
  std::vector<std::unique_ptr<Request>> requests;
  for (int i = 0; i < 3; ++i) {
    ranks.push_back(std::make_unique<RankLoad>());
    ranks.back()->Stand(board, "");
  }
  TimePoint now = kTestBegin;
  for (int step = 0; step < 20'000; ++step) {
    now += Duration(static_cast<int64_t>(random.Below(2'000'000'000)));
    if (random.Below(4) == 0) {
      const double work = static_cast<double>(random.Below(3000));
      const auto waiting = static_cast<uint32_t>(random.Below(3));
      ranks[random.Below(ranks.size())]->SetForeign(
          {.queued = waiting == 0 ? 0 : work,
           .oldest = waiting == 0 ? 0 : work * random.Unit(),
           .busy_since = now - Duration(static_cast<int64_t>(random.Below(2'000'000'000))),
           .context = random.Below(100),
           .requests = waiting + static_cast<uint32_t>(random.Below(3)),
           .waiting = waiting});
    } else if (requests.size() < 8 && random.Below(2) == 0) {
      Request& request = *requests.emplace_back(std::make_unique<Request>());
      request.rank = random.Below(ranks.size());
      const auto kind = random.Below(3) == 0 ? RankLoad::Kind::kSilent : RankLoad::Kind::kAnnounced;
      ranks[request.rank]->Enter(request.stay, kind, static_cast<double>(random.Below(3000)),
                                 random.Below(100), now);
    } else if (!requests.empty()) {
      const size_t which = random.Below(requests.size());
      Request& request = *requests[which];
      switch (random.Below(3)) {
        case 0:
          ranks[request.rank]->FirstByte(request.stay, now);
          break;
        case 1:
          ranks[request.rank]->Grow(request.stay, 16);
          break;
        default:
          ranks[request.rank]->Leave(request.stay, now);
          requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    uint64_t waiting = 0;
    const auto block = ranks[0]->block();
    for (const auto& rank : ranks) {
      const RankLoad::View view = rank->Look(now, kMillisecondUnit);
      // One of the two floors is below it.
      const auto above = [&](const std::optional<LoadFloor>& floor) {
        return floor && view.backlog >= floor->backlog && view.context >= floor->context &&
               view.requests >= floor->requests;
      };
      ASSERT_TRUE(above(block->Free()) || above(block->Queued()));
      waiting += view.waiting;
    }
    ASSERT_EQ(block->waiting(), waiting);
  }
  for (const auto& request : requests) ranks[request->rank]->Leave(request->stay, now);
}

}  // namespace
}  // namespace fathom
