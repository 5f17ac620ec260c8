#include "router/routing/decision_ring.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace fathom {
namespace {

Decision Named(std::string id) {
  Decision decision;
  decision.request_id = std::move(id);
  return decision;
}

std::vector<std::string> Latest(const DecisionRing& ring, size_t most) {
  std::vector<std::string> ids;
  for (const Decision& decision : ring.Latest(most)) ids.push_back(decision.request_id);
  return ids;
}

TEST(DecisionRing, TellsTheNewestFirst) {
  DecisionRing ring(3);
  EXPECT_TRUE(ring.Latest(10).empty());
  for (const char* id : {"a", "b", "c", "d"}) {
    Decision decision = Named(id);
    ring.Keep(decision);
  }
  EXPECT_EQ(Latest(ring, 10), (std::vector<std::string>{"d", "c", "b"}));
  EXPECT_EQ(Latest(ring, 2), (std::vector<std::string>{"d", "c"}));
  EXPECT_EQ(Latest(ring, 0), std::vector<std::string>{});
  EXPECT_EQ(ring.count(), 4u);
}

TEST(DecisionRing, NumbersDecisionsFromOneOn) {
  DecisionRing ring(2);
  Decision decision;
  for (const uint64_t number : {1, 2, 3}) {
    ring.Keep(decision);
    EXPECT_EQ(decision.number, number);
  }
  EXPECT_EQ(ring.Latest(1).at(0).number, 3u);
}

TEST(DecisionRing, KeepsACopy) {
  DecisionRing ring(2);
  Decision decision = Named("before");
  decision.ranks.resize(2);
  ring.Keep(decision);
  decision.request_id = "after";
  decision.ranks.clear();
  const Decision kept = ring.Latest(1).at(0);
  EXPECT_EQ(kept.request_id, "before");
  EXPECT_EQ(kept.ranks.size(), 2u);
}

TEST(DecisionRing, CanKeepNothing) {
  DecisionRing ring(0);
  Decision decision;
  ring.Keep(decision);
  EXPECT_EQ(ring.count(), 1u);
  EXPECT_TRUE(ring.Latest(10).empty());
}

TEST(DecisionRing, LearnsWhatBecameOfADecision) {
  DecisionRing ring(2);
  Decision first = Named("first");
  ring.Keep(first);
  Decision second = Named("second");
  ring.Keep(second);
  Waste waste;
  waste[WasteCause::kLoad] = 32;
  ring.Complete(first.number, 16, waste);
  const auto latest = ring.Latest(2);
  EXPECT_TRUE(latest[1].served);
  EXPECT_EQ(latest[1].found, 16u);
  EXPECT_EQ(latest[1].waste[WasteCause::kLoad], 32u);
  EXPECT_FALSE(latest[0].served);
  EXPECT_EQ(latest[0].waste.total(), 0u);
}

TEST(DecisionRing, BlamesNoOtherDecisionForOneThatIsGone) {
  DecisionRing ring(2);
  Decision decision;
  for (int i = 0; i < 3; ++i) ring.Keep(decision);
  ring.Complete(1, 16, {});  // decision 3 has replaced it
  for (const Decision& kept : ring.Latest(2)) EXPECT_FALSE(kept.served) << kept.number;
  ring.Complete(3, std::nullopt, {});
  EXPECT_TRUE(ring.Latest(1).at(0).served);
  EXPECT_FALSE(ring.Latest(1).at(0).found);
  DecisionRing none(0);
  none.Complete(1, 16, {});
  EXPECT_TRUE(none.Latest(1).empty());
}

TEST(DecisionRing, GivesEveryDecisionOfEveryThreadItsOwnNumber) {
  constexpr size_t kEach = 200;
  DecisionRing ring(4 * kEach);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Decision decision;
      for (size_t n = 0; n < kEach; ++n) {
        ring.Keep(decision);
        ring.Latest(2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> numbers;
  for (const Decision& decision : ring.Latest(~size_t{0})) numbers.insert(decision.number);
  EXPECT_EQ(numbers.size(), 4 * kEach);
  EXPECT_EQ(*numbers.rbegin(), 4 * kEach);
}

}  // namespace
}  // namespace fathom
