#include "router/routing/steering.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "router/routing/reservation.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Patience = Steering::Patience;

constexpr uint32_t kBlock = 64;

// One block of tokens for every letter.
std::vector<TokenId> Prompt(std::string_view letters) {
  std::vector<TokenId> tokens;
  for (const char letter : letters) {
    for (TokenId i = 0; i < kBlock; ++i) tokens.push_back(static_cast<TokenId>(letter) * 1000 + i);
  }
  return tokens;
}

// A fleet of workers with an index that events could have filled.
class SteeringTest : public testing::Test {
 protected:
  void Build(size_t workers, const SteeringOptions& options = {}) {
    world_.emplace(options, 99);
    for (size_t i = 0; i < workers; ++i) {
      WorkerSpec spec;
      spec.url = "http://worker" + std::to_string(i);
      workers_.push_back(std::make_unique<Worker>(spec, BreakerOptions{}));
      places_.push_back({workers_.back().get(), &workers_.back()->ranks.only()});
    }
    const CacheIndex* const index = world_->approximate ? &world_->approximate->index() : &index_;
    steering_.emplace(*world_, DepthsOf(index), 1);
  }
  // The engine's hash of a block is the prompt up to it.
  void Hold(size_t place, std::string_view letters, Tier tier = Tier::kDevice) {
    const auto tokens = Prompt(letters);
    std::vector<uint64_t> hashes;
    for (size_t i = 1; i <= letters.size(); ++i) {
      hashes.push_back(std::hash<std::string_view>{}(letters.substr(0, i)));
    }
    auto& holdings = holdings_[place];
    if (!holdings) holdings = index_.Open(places_[place].label(), {.size = kBlock}, seat_);
    holdings->Store({.hashes = hashes, .tokens = tokens, .part = {.tier = tier}}, now_);
  }
  Steering::Choice Decide(const std::vector<TokenId>& tokens,
                          Patience patience = Patience::kMayWait) {
    question_ = {.tokens = tokens, .seed = kKeySeed, .weights = world_->options.weights};
    return steering_->Decide(question_, places_, now_, patience);
  }
  // Where the prompt would go.
  size_t PlaceOf(std::string_view letters) {
    prompt_ = Prompt(letters);
    const Steering::Choice choice = Decide(prompt_);
    EXPECT_NE(choice.decision, nullptr);
    EXPECT_EQ(choice.decision->rank().rank, choice.place.label());
    return PositionOf(choice.place);
  }
  size_t PositionOf(const Place& place) const {
    for (size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].label() == place.label()) return i;
    }
    return places_.size();
  }
  // Sends the prompt to the chosen rank; it stays there until the reservation ends.
  std::unique_ptr<Reservation> Send(std::string_view letters) {
    prompt_ = Prompt(letters);
    const Steering::Choice choice = Decide(prompt_, Patience::kMustDecide);
    sent_to_ = PositionOf(choice.place);
    return std::make_unique<Reservation>(*steering_, choice, question_,
                                         Reservation::Answer::kStreamed, now_);
  }
  // Work of another request.
  void Load(size_t place, double work, uint64_t context = 0) {
    places_[place].rank->load.Enter(stays_.emplace_back(), RankLoad::Kind::kAnnounced, work,
                                    context, now_);
  }
  void Report(size_t place, const EngineReport& report) {
    places_[place].worker->report.Publish(report, now_);
  }

  CacheIndex index_{size_t{1} << 26, 1};
  Epochs::Seat seat_{index_.epochs()};
  std::map<size_t, std::unique_ptr<RankHoldings>> holdings_;
  std::optional<SteeringWorld> world_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Place> places_;
  std::optional<Steering> steering_;
  std::deque<RankLoad::Stay> stays_;
  RouteQuestion question_;
  std::vector<TokenId> prompt_;
  size_t sent_to_ = 0;
  TimePoint now_{std::chrono::hours(1)};
};

TEST_F(SteeringTest, FollowsTheLongestPrefix) {
  Build(2);
  Hold(0, "AB");
  Hold(0, "ACD");
  Hold(1, "ACE");
  EXPECT_EQ(PlaceOf("ACDF"), 0u);
  EXPECT_EQ(PlaceOf("ACEG"), 1u);
  EXPECT_EQ(PlaceOf("ABG"), 0u);
}

TEST_F(SteeringTest, FollowsTheLongestPrefixAmongTheRanksOfAWorker) {
  Build(1);
  workers_[0]->ranks.Know(0);
  workers_[0]->ranks.Know(1);
  places_.clear();
  workers_[0]->ranks.ForEach([&](Rank& rank) { places_.push_back({workers_[0].get(), &rank}); });
  ASSERT_EQ(places_.size(), 2u);
  Hold(0, "ACD");
  Hold(1, "ACE");
  EXPECT_EQ(PlaceOf("ACDF"), 0u);
  EXPECT_EQ(PlaceOf("ACEG"), 1u);
}

TEST_F(SteeringTest, SaysWhatItKnew) {
  Build(2);
  Hold(0, "ACD");
  Hold(1, "AC", Tier::kHost);
  const auto tokens = Prompt("ACDF");
  const Decision decision = *Decide(tokens).decision;
  EXPECT_TRUE(decision.tokens_known);
  EXPECT_TRUE(decision.events);
  EXPECT_EQ(decision.prompt.tokens, 4 * kBlock);
  EXPECT_EQ(decision.tree_size, 5u);
  EXPECT_EQ(decision.at, now_);
  ASSERT_EQ(decision.ranks.size(), 2u);
  EXPECT_EQ(decision.ranks[0].cached[0], 3 * kBlock);
  EXPECT_EQ(decision.ranks[0].block_size, kBlock);
  EXPECT_EQ(decision.ranks[1].cached[0], 0u);
  EXPECT_EQ(decision.ranks[1].cached[1], 2 * kBlock);
  EXPECT_EQ(decision.cached_tokens(), 3 * kBlock);
  Decision replayed = decision;
  fathom::Decide(replayed);
  EXPECT_EQ(replayed.chosen, decision.chosen);
  EXPECT_EQ(replayed.prices, decision.prices);
}

TEST_F(SteeringTest, PutsLoadAgainstDepth) {
  Build(2);
  Hold(0, "ACD");
  Load(0, 10'000);
  EXPECT_EQ(PlaceOf("ACDF"), 1u);
}

TEST_F(SteeringTest, GoesByLoadWhereTheTokensAreNotKnown) {
  Build(2);
  Hold(0, "ACD");
  Load(0, 100, 100);
  const RouteQuestion question{.prompt_tokens = 300, .weights = {}};
  const auto choice = steering_->Decide(question, places_, now_, Patience::kMayWait);
  EXPECT_EQ(PositionOf(choice.place), 1u);
  EXPECT_FALSE(choice.decision->tokens_known);
  EXPECT_EQ(choice.decision->prompt.tokens, 300u);
  EXPECT_TRUE(steering_->marks().empty());
}

TEST_F(SteeringTest, KeepsABurstTogetherBeforeAnyEventCanCome) {
  Build(4);
  std::vector<std::unique_ptr<Reservation>> burst;
  burst.push_back(Send("ABCDEFGHIJKLMNOP"));
  const size_t first = sent_to_;
  for (int i = 0; i < 3; ++i) {
    burst.push_back(Send("ABCDEFGHIJKLMNOP"));
    EXPECT_EQ(sent_to_, first);
  }
  const Decision& decision = *Decide(prompt_).decision;
  EXPECT_GT(decision.rank().believed, 0u);
  EXPECT_EQ(decision.cached_tokens(), 0u) << "nothing is confirmed";
  const auto other = Send("QRSTUVWX");
  EXPECT_NE(sent_to_, first);
}

TEST_F(SteeringTest, BelievesNothingOfARankWhosePrefixCachingIsOff) {
  Build(2);
  Hold(0, "ABCDEFGH");
  Report(0, {.prefix_caching = false});
  Report(1, {.prefix_caching = true});
  Load(0, 50);
  EXPECT_EQ(PlaceOf("ABCDEFGH"), 1u);
  const Decision& decision = *Decide(prompt_).decision;
  EXPECT_EQ(decision.ranks[0].trust, 0);
  EXPECT_EQ(decision.ranks[1].trust, 1);
  EXPECT_EQ(decision.prices[0].reused, 0);
}

TEST_F(SteeringTest, CountsGuessesAsBelievedAndNotAsCached) {
  SteeringOptions options;
  options.events = false;
  options.approximate_ttl = seconds(10);
  Build(4, options);
  auto sent = Send("ABCDEFGH");
  const size_t first = sent_to_;
  sent->FirstByte(now_);
  sent->Release(now_);
  now_ += seconds(5);  // after beliefs about sent prompts have expired
  EXPECT_EQ(PlaceOf("ABCDEFGHI"), first);
  const Decision& decision = *Decide(prompt_).decision;
  EXPECT_FALSE(decision.events);
  EXPECT_EQ(decision.rank().believed, 8 * kBlock);
  EXPECT_EQ(decision.rank().cached[0], 0u);
  EXPECT_EQ(decision.cached_tokens(), 0u);
  now_ += seconds(5);
  EXPECT_EQ(Decide(prompt_).decision->ranks[first].believed, 0u) << "though nobody sent meanwhile";
}

TEST_F(SteeringTest, LeavesOutRanksThatAreFull) {
  Build(2);
  Hold(0, "ABCDEFGH");
  Report(0, {.max_running = 1});
  Load(0, 0);
  EXPECT_EQ(PlaceOf("ABCDEFGH"), 1u);
  EXPECT_EQ(Decide(prompt_).decision->ranks.size(), 1u);
  const Steering::Choice choice = Decide(prompt_, Patience::kMustDecide);
  EXPECT_EQ(choice.decision->ranks.size(), 2u) << "whoever must choose has no other place";
  EXPECT_EQ(PositionOf(choice.place), 0u);
}

TEST_F(SteeringTest, WaitsOnlyWhenNoRankHasRoomAndItMay) {
  Build(2);
  Report(0, {.batch_tokens = 1000});
  Report(1, {.batch_tokens = 1000});
  prompt_ = Prompt("AB");
  Load(0, 2000);
  EXPECT_EQ(PositionOf(Decide(prompt_).place), 1u);
  Load(1, 5000);
  EXPECT_EQ(Decide(prompt_).decision, nullptr);
  const Steering::Choice must = Decide(prompt_, Patience::kMustDecide);
  ASSERT_NE(must.decision, nullptr);
  EXPECT_EQ(PositionOf(must.place), 0u);
  places_[1].rank->load.Leave(stays_.back(), now_);
  EXPECT_EQ(PositionOf(Decide(prompt_).place), 1u);
}

// A rank that is short of room may still be the best if another rank is free.
TEST_F(SteeringTest, PricesShortRanksBesideFreeOnes) {
  Build(2);
  Hold(0, "ABCDEFGH");
  Report(0, {.batch_tokens = 10});
  Load(0, 20);
  EXPECT_EQ(PlaceOf("ABCDEFGH"), 0u);
}

TEST_F(SteeringTest, AlwaysHasRoomOnAnIdleRank) {
  Build(1);
  Report(0, {.kv_tokens = 10, .max_running = 1, .batch_tokens = 1});
  EXPECT_EQ(PlaceOf("ABCDEFGH"), 0u);
}

TEST_F(SteeringTest, NeverWaitsWhereTheOperatorWantsNoQueue) {
  SteeringOptions options;
  options.queue_threshold = 0;
  Build(1, options);
  Report(0, {.max_running = 1});
  Load(0, 1e9);
  EXPECT_EQ(PlaceOf("AB"), 0u);
}

TEST_F(SteeringTest, KeepsPrefixesTogetherByHash) {
  SteeringOptions options;
  options.mode = RouterMode::kPrefixHash;
  options.prefix_tokens = 2 * kBlock;
  Build(8, options);
  std::set<size_t> places;
  for (char letter = 'A'; letter <= 'Z'; ++letter) {
    const std::string prefix = {'A', letter};
    const size_t place = PlaceOf(prefix + "X");
    EXPECT_EQ(PlaceOf(prefix + "YZ"), place);
    places.insert(place);
  }
  EXPECT_GT(places.size(), 4u);
  const RouteQuestion unknown{.prompt_tokens = 100, .weights = {}};
  Load(3, 100);
  EXPECT_NE(PositionOf(steering_->Decide(unknown, places_, now_, Patience::kMayWait).place), 3u);
}

TEST_F(SteeringTest, AvoidsARankThatHasShownToBeSlow) {
  Build(2);
  Rank& rank = *places_[0].rank;
  for (int i = 0; i < 100; ++i) {
    rank.slowness.Observe({.work = 1000, .ratio = 4, .life = rank.life()}, rank.life(), now_);
  }
  EXPECT_EQ(PlaceOf("ABCDEFGH"), 1u);
  EXPECT_GT(Decide(prompt_).decision->ranks[0].slowness, 2.5);
}

// The others are busy all the time, and become faster; the slow rank gets nothing.
TEST_F(SteeringTest, TriesARankAgainThatWasSlowAndIsIdle) {
  Build(2);
  Rank& rank = *places_[0].rank;
  for (int i = 0; i < 100; ++i) {
    rank.slowness.Observe({.work = 1000, .ratio = 16, .life = rank.life()}, rank.life(), now_);
  }
  const double before = Decide(prompt_).decision->ranks[0].slowness;
  for (int i = 0; i < 500; ++i) world_->speed.Observe(1000, std::chrono::milliseconds(1));
  EXPECT_EQ(Decide(prompt_).decision->ranks[0].slowness, before) << "it has answered nothing since";
  now_ += std::chrono::minutes(3);
  EXPECT_EQ(Decide(prompt_).decision->ranks[0].slowness, 1);
  Load(1, 100);
  EXPECT_EQ(PlaceOf("ABCDEFGH"), 0u);
}

TEST_F(SteeringTest, FeelsThePressureOfThoseWhoWait) {
  Build(2);
  prompt_ = Prompt("AB");
  EXPECT_EQ(Decide(prompt_).decision->prompt.pressure, 0);
  for (int i = 0; i < 3; ++i) Load(0, 10);
  EXPECT_EQ(Decide(prompt_).decision->prompt.pressure, 1.5);
}

TEST_F(SteeringTest, PricesThePartOfAPromptThatIsNotKnown) {
  Build(1);
  const std::vector<TokenId> beginning(1000, 7);
  const RouteQuestion question{
      .tokens = beginning, .seed = kKeySeed, .prompt_tokens = 50'000, .weights = {}};
  const auto choice = steering_->Decide(question, places_, now_, Steering::Patience::kMustDecide);
  EXPECT_EQ(choice.decision->prompt.tokens, 50'000u);
}

TEST_F(SteeringTest, KeepsNamespacesApart) {
  Build(2);
  Hold(0, "ABCD");
  prompt_ = Prompt("ABCD");
  const auto sent = Send("ABCD");
  const RouteQuestion other{.tokens = prompt_, .seed = NamespaceSeed("", "salt"), .weights = {}};
  const auto choice = steering_->Decide(other, places_, now_, Patience::kMayWait);
  for (const RankView& rank : choice.decision->ranks) {
    EXPECT_EQ(rank.cached[0], 0u);
    EXPECT_EQ(rank.believed, 0u);
    EXPECT_EQ(rank.shared, 0u);
  }
}

TEST_F(SteeringTest, DecidesWithoutAnIndex) {
  Build(2);
  Steering blind(*world_, DepthsOf(nullptr), 1);
  Load(0, 100);
  prompt_ = Prompt("ABCD");
  const RouteQuestion question{.tokens = prompt_, .seed = kKeySeed, .weights = {}};
  const auto choice = blind.Decide(question, places_, now_, Patience::kMayWait);
  EXPECT_EQ(PositionOf(choice.place), 1u);
  EXPECT_EQ(choice.decision->tree_size, 0u);
}

}  // namespace
}  // namespace fathom
