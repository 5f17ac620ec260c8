#include "router/routing/steering.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "router/routing/reservation.h"
#include "router/routing/text_claim.h"

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
    question_.hint = hint_;
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
  std::optional<RouteQuestion::Hint> hint_;
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

TEST_F(SteeringTest, FollowsAHintWhoseEventsAreLate) {
  Build(4);
  PlaceOf("ABCD");
  const Place& at = places_[2];
  hint_ = {.last = {.rank = at.label(), .life = at.rank->life(), .mark = steering_->marks().back()},
           .events_late = true};
  Load(2, 50);  // more than a tie, less than the prefill of what was sent before
  EXPECT_EQ(PlaceOf("ABCDE"), 2u);
  const Decision decision = *Decide(prompt_).decision;
  EXPECT_TRUE(decision.hint_decided);
  EXPECT_EQ(decision.hint->tokens, 4 * kBlock);
  EXPECT_EQ(decision.rank().believed, 4 * kBlock);
  EXPECT_EQ(decision.cached_tokens(), 0u) << "nothing is confirmed";
  Load(2, 500);
  EXPECT_NE(PlaceOf("ABCDE"), 2u) << "more than that prefill";
}

TEST_F(SteeringTest, BelievesAHintOnlyAboutTheSamePromptTheSameEngineAndForSomeTime) {
  Build(2);
  PlaceOf("ABCD");
  const Place& at = places_[1];
  const RouteQuestion::Hint hint{
      .last = {.rank = at.label(), .life = at.rank->life(), .mark = steering_->marks().back()},
      .events_late = true};
  Load(1, 50);
  hint_ = hint;
  EXPECT_EQ(PlaceOf("ABCDE"), 1u);
  EXPECT_EQ(PlaceOf("XBCDE"), 0u) << "another prompt";
  EXPECT_EQ(PlaceOf("ABC"), 0u) << "a shorter one";
  hint_->last.life += 1;
  EXPECT_EQ(PlaceOf("ABCDE"), 0u) << "another process";
  hint_ = hint;
  hint_->events_late = false;
  EXPECT_EQ(PlaceOf("ABCDE"), 0u) << "events had their time";
  hint_ = hint;
  hint_->last.rank.dp_rank = 7;
  EXPECT_EQ(PlaceOf("ABCDE"), 0u) << "no such rank";
  EXPECT_FALSE(Decide(prompt_).decision->hint);
}

TEST_F(SteeringTest, BelievesNoHintWhereAnotherRankHasMore) {
  Build(3);
  PlaceOf("ABCD");
  const Place& at = places_[1];
  hint_ = {.last = {.rank = at.label(), .life = at.rank->life(), .mark = steering_->marks().back()},
           .events_late = true};
  Hold(0, "ABCDE");
  Load(0, 40);
  EXPECT_EQ(PlaceOf("ABCDEF"), 0u);
  EXPECT_EQ(Decide(prompt_).decision->hint->tokens, 0u);
  Hold(2, "ABC");
  EXPECT_EQ(PlaceOf("ABCDEF"), 0u);
}

TEST_F(SteeringTest, FollowsAHintAmongEqualRanksWithoutTokens) {
  Build(4);
  RouteQuestion question{.prompt_tokens = 300, .weights = {}};
  question.hint = {.last = {.rank = places_[2].label()}};
  for (int i = 0; i < 20; ++i) {
    const auto choice = steering_->Decide(question, places_, now_, Patience::kMayWait);
    EXPECT_EQ(PositionOf(choice.place), 2u);
  }
  Load(2, 100, 100);
  const auto choice = steering_->Decide(question, places_, now_, Patience::kMayWait);
  EXPECT_NE(PositionOf(choice.place), 2u);
}

// A gateway in front may send one user for all of its own.
TEST_F(SteeringTest, SpreadsTheRequestsOfOneHint) {
  Build(4);
  hint_ = {.last = {.rank = places_[0].label()}};
  std::vector<std::unique_ptr<Reservation>> running;
  std::vector<size_t> counts(4);
  for (char letter = 0; letter < 80; ++letter) {
    running.push_back(Send(std::string(16, static_cast<char>(32 + letter))));
    running.back()->FirstByte(now_);
    ++counts[sent_to_];
    hint_->last = {.rank = places_[sent_to_].label()};
  }
  for (size_t place = 0; place < 4; ++place) EXPECT_NEAR(counts[place], 20, 4) << place;
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

// Prompts without tokens.
class SteeringByTextTest : public SteeringTest {
 protected:
  void SetUp() override { Build(3, {.by_text = true}); }
  Steering::Choice Ask(std::string_view letters) {
    prompt_ = Prompt(letters);
    question_ = {
        .tokens = prompt_, .seed = kKeySeed, .by_text = true, .weights = world_->options.weights};
    return steering_->Decide(question_, places_, now_, Patience::kMustDecide);
  }
  // Serves the prompt; its engine finds so many tokens.
  size_t Serve(std::string_view letters, std::optional<uint64_t> found) {
    const Steering::Choice choice = Ask(letters);
    TextClaim claim(*world_->texts, choice, prompt_.size(), true);
    claim.FirstByte(prompt_, kKeySeed, now_);
    claim.End(prompt_.size(), found);
    return PositionOf(choice.place);
  }
};

TEST_F(SteeringByTextTest, FollowsWhatWasSent) {
  const size_t first = Serve("ABCD", 0);
  Load(first, 100);
  const size_t second = Serve("EFGH", 0);
  EXPECT_NE(first, second);
  Load(second, 200);
  const Steering::Choice choice = Ask("ABCDX");
  EXPECT_EQ(PositionOf(choice.place), first);
  EXPECT_TRUE(choice.decision->by_text);
  EXPECT_EQ(choice.decision->rank().text, 4 * kBlock);
  EXPECT_EQ(choice.decision->rank().believed, 4 * kBlock);
  EXPECT_EQ(choice.decision->cached_tokens(), 0u) << "it is never reported as cached";
}

TEST_F(SteeringByTextTest, KeepsTextsAndTokensApart) {
  Serve("ABCD", 0);
  Hold(2, "WXYZ");
  prompt_ = Prompt("ABCD");
  EXPECT_EQ(Decide(prompt_).decision->rank().believed, 0u) << "equal tokens are another prompt";
  for (const RankView& rank : Ask("WXYZ").decision->ranks) {
    EXPECT_EQ(rank.text + rank.believed + rank.cached[0], 0u);
  }
}

TEST_F(SteeringByTextTest, KnowsNothingBeforeTheFirstByte) {
  const Steering::Choice choice = Ask("ABCD");
  TextClaim claim(*world_->texts, choice, prompt_.size(), true);
  EXPECT_FALSE(claim.End(prompt_.size(), 0));
  EXPECT_EQ(world_->texts->index().held(), 0u);
}

TEST_F(SteeringByTextTest, DoubtsARankThatDoesNotFindWhatWasAssumed) {
  const size_t place = Serve("ABCD", 0);
  for (unsigned i = 0; i + 1 < TextRecord::kLeast; ++i) EXPECT_EQ(Serve("ABCD", 1), place);
  EXPECT_EQ(Ask("ABCD").decision->rank().trust, 1) << "three are too few";
  Serve("ABCD", 1);
  Load(place, 10);
  const Steering::Choice choice = Ask("ABCD");
  EXPECT_NE(PositionOf(choice.place), place);
  // A request that is sent there all the same shows that it is well again.
  for (int i = 0; i < 10; ++i) places_[place].rank->text.Served(256, 256);
  EXPECT_EQ(PositionOf(Ask("ABCD").place), place);
}

TEST_F(SteeringByTextTest, BelievesEnginesThatReportNothing) {
  const size_t place = Serve("ABCD", std::nullopt);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Serve("ABCD", std::nullopt), place);
  EXPECT_EQ(places_[place].rank->text.credit(), 1);
}

TEST_F(SteeringByTextTest, UsesNoTextsWhereTheyAreNotRemembered) {
  SteeringWorld hashing({.mode = RouterMode::kPrefixHash, .by_text = true}, 99);
  EXPECT_FALSE(hashing.texts);
  Steering steering(hashing, DepthsOf(nullptr), 1);
  prompt_ = Prompt("ABCD");
  question_ = {.tokens = prompt_, .seed = 5, .by_text = true};
  const auto choice = steering.Decide(question_, places_, now_, Patience::kMustDecide);
  EXPECT_NE(choice.decision->prefix, 0u) << "the values are hashed like tokens";
}

TEST_F(SteeringByTextTest, MeasuresWhatWasAssumedInTheTokensOfTheEngine) {
  Serve("ABCD", 0);
  const Steering::Choice choice = Ask("ABCDEFGH");
  TextClaim claim(*world_->texts, choice, prompt_.size(), true);
  claim.FirstByte(prompt_, kKeySeed, now_);
  const auto outcome = claim.End(prompt_.size() * 2, 500);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->assumed, 2 * 4 * kBlock);
  EXPECT_EQ(outcome->found, 500u);
}

}  // namespace
}  // namespace fathom
