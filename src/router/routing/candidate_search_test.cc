#include "router/routing/candidate_search.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "router/fleet/fleet.h"
#include "router/routing/reservation.h"
#include "router/routing/steering.h"

namespace fathom {
namespace {

using Patience = Steering::Patience;

constexpr uint32_t kSearchBlock = 16;

// A fleet of one model whose ranks differ in everything that a price depends on.
class ManyRanks {
 public:
  ManyRanks(uint64_t seed, size_t ranks, bool several)
      : random_(seed), world_{SteeringOptions{.several = several}, 1} {
    for (uint64_t i = 0; i < ranks; ++i) Add(i);
    std::vector<Place> places;
    for (const auto& worker : workers_) places.push_back({worker.get(), &worker->ranks.only()});
    sparse_.Assign(places, Roster::Blocks::kUsed);
    places.clear();
    for (uint32_t i = 0; i < sparse_.size(); ++i) places.push_back(sparse_.at(i));
    whole_.Assign(places, Roster::Blocks::kIgnored);
    tokens_.resize(1000 + random_.Below(3000));
    for (TokenId& token : tokens_) token = static_cast<TokenId>(random_.Below(1000));
  }
  ~ManyRanks() {
    for (Request& request : requests_) request.rank->load.Leave(request.stay, now_);
  }

  // Loads are drawn from few values, so that ranks are often alike.
  void Change() {
    now_ += std::chrono::milliseconds(random_.Below(200));
    const uint64_t changes = random_.Below(40);
    for (uint64_t i = 0; i < changes; ++i) ChangeOne();
  }
  // Of the same state, once by blocks and once by a look at every rank.
  void Compare() {
    const RouteQuestion question = Question();
    const Patience patience = random_.Below(2) == 0 ? Patience::kMayWait : Patience::kMustDecide;
    StartTurn();
    const Steering::Choice sparse = by_blocks_.Decide(question, sparse_, now_, patience);
    const Steering::Choice whole = by_ranks_.Decide(question, whole_, now_, patience);
    ASSERT_EQ(sparse.decision == nullptr, whole.decision == nullptr);
    if (sparse.decision == nullptr) return;
    ++decisions_;
    const Decision& found = *sparse.decision;
    const Decision& expected = *whole.decision;
    ASSERT_EQ(found.prompt, expected.prompt);
    ASSERT_EQ(sparse.place.rank, whole.place.rank);
    ASSERT_EQ(found.rank(), expected.rank());
    ASSERT_EQ(found.price(), expected.price());
    ASSERT_EQ(found.margin, expected.margin);
    ASSERT_EQ(found.hint, expected.hint);
    ASSERT_EQ(found.hint_decided, expected.hint_decided);
    by_hint_ += found.hint_decided ? 1 : 0;
    ASSERT_LE(found.ranks.size(),
              kBestListed + kHolders + (found.hint ? 1 : 0) + (found.several ? 1 : 0));
    if (found.full.empty()) {
      ASSERT_EQ(found.ranks.size() + found.others.count, sparse_.present());
    }
    Replay(found);
    Replay(expected);
  }
  size_t decisions() const { return decisions_; }
  size_t by_hint() const { return by_hint_; }

 private:
  static constexpr size_t kHolders = 6;

  struct Request {
    Rank* rank = nullptr;
    RankLoad::Stay stay;
  };

  void Add(uint64_t number) {
    workers_.push_back(*fleet_.Add({.url = "http://w:" + std::to_string(number)}));
    Fleet::ModelReport report;
    report.models = {"m"};
    fleet_.SetModels(workers_.back()->id(), std::move(report));
    EngineReport engine{.block_size = kSearchBlock};
    engine.kv_tokens = random_.Below(3) == 0 ? 0 : 2048 * (1 + random_.Below(3));
    engine.max_running = random_.Below(2) == 0 ? 0 : 2;
    workers_.back()->report.Publish(engine, now_);
    Rank& rank = workers_.back()->ranks.only();
    const bool slow = random_.Below(8) == 0;
    for (int i = 0; slow && i < 40; ++i) {
      rank.slowness.Observe({.work = 1000, .ratio = 8, .life = rank.life()}, rank.life(), now_);
    }
    holdings_.push_back(
        index_.Open({workers_.back()->id().value(), 0}, {.size = kSearchBlock}, seat_));
  }

  void ChangeOne() {
    switch (random_.Below(5)) {
      case 0: {
        Request& request = requests_.emplace_back();
        request.rank = &workers_[random_.Below(workers_.size())]->ranks.only();
        const auto kind =
            random_.Below(4) == 0 ? RankLoad::Kind::kSilent : RankLoad::Kind::kAnnounced;
        request.rank->load.Enter(request.stay, kind, 500.0 * static_cast<double>(random_.Below(3)),
                                 1000 * random_.Below(2), now_);
        break;
      }
      case 1:
        if (!requests_.empty())
          requests_.front().rank->load.FirstByte(requests_.front().stay, now_);
        break;
      case 2:
        if (requests_.empty()) break;
        requests_.front().rank->load.Leave(requests_.front().stay, now_);
        requests_.pop_front();
        break;
      case 3:
        world_.speed.Observe(1000, std::chrono::milliseconds(20 + random_.Below(200)));
        break;
      default:
        Store(random_.Below(workers_.size()), 1 + random_.Below(40));
    }
  }

  // Blocks of no prompt, or the beginning of the one that is asked for.
  void Store(size_t worker, size_t blocks) {
    std::vector<TokenId> tokens(blocks * kSearchBlock,
                                static_cast<TokenId>(2000 + random_.Below(50)));
    if (random_.Below(20) == 0 && holders_.size() < kHolders) {
      holders_.push_back(worker);
      tokens.assign(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(
                                                           std::min(tokens.size(), size_t{640})));
    }
    std::vector<uint64_t> keys;
    KeyChain(tokens, {.size = kSearchBlock}, kKeySeed, keys).All();
    keys.resize(tokens.size() / kSearchBlock);
    holdings_[worker]->Store({.hashes = keys, .tokens = tokens}, now_);
  }

  RouteQuestion Question() {
    RouteQuestion question{.seed = kKeySeed, .weights = {}};
    question.queued = random_.Below(3) * 10;
    question.prompt_tokens = 700;
    if (random_.Below(5) != 0) question.tokens = tokens_;
    if (random_.Below(4) == 0)
      question.weights.prefill_scale = static_cast<double>(random_.Below(3));
    if (random_.Below(4) == 0) question.weights.active_request = 100;
    if (random_.Below(2) == 0) question.hint = Hint();
    return question;
  }

  // Of a session whose last prompt was the beginning of this one, or another.
  RouteQuestion::Hint Hint() {
    Worker& worker = *workers_[random_.Below(workers_.size())];
    RouteQuestion::Hint hint;
    hint.last = {.rank = {worker.id().value(), 0}, .life = worker.ranks.only().life()};
    std::vector<PromptMark> marks;
    MarkPrompt(tokens_, kKeySeed ^ world_.secret, marks);
    hint.last.mark = marks[random_.Below(marks.size())];
    if (random_.Below(4) == 0) ++hint.last.mark.key;
    hint.events_late = random_.Below(2) == 0;
    return hint;
  }

  void StartTurn() {
    sparse_.StartTurn();
    whole_.StartTurn();
    const uint64_t excluded = random_.Below(2) == 0 ? 0 : random_.Below(sparse_.size());
    for (uint64_t i = 0; i < excluded; ++i) {
      const auto position = static_cast<uint32_t>(random_.Below(sparse_.size()));
      if (sparse_.present() == 1) break;
      sparse_.Exclude(position);
      whole_.Exclude(position);
    }
  }

  // What is recorded repeats the choice.
  static void Replay(const Decision& made) {
    Decision replayed = made;
    replayed.prices.clear();
    replayed.chosen = ~size_t{0};
    Decide(replayed);
    ASSERT_EQ(replayed.chosen, made.chosen);
    ASSERT_EQ(replayed.prices, made.prices);
    ASSERT_EQ(replayed.margin, made.margin);
  }

  Random random_;
  TimePoint now_{std::chrono::hours(1)};
  Fleet fleet_{BreakerOptions{}};
  CacheIndex index_{size_t{1} << 28, 1};
  Epochs::Seat seat_{index_.epochs()};
  std::vector<std::shared_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<RankHoldings>> holdings_;
  std::vector<size_t> holders_;
  std::deque<Request> requests_;
  std::vector<TokenId> tokens_;
  SteeringWorld world_;
  Steering by_blocks_{world_, DepthsOf(&index_), 1};
  Steering by_ranks_{world_, DepthsOf(&index_), 1};
  Roster sparse_;
  Roster whole_;
  size_t decisions_ = 0;
  size_t by_hint_ = 0;
};

TEST(CandidateSearchProperty, ChoosesWhatALookAtEveryRankChooses) {
  Random random(17);
  size_t decisions = 0;
  size_t by_hint = 0;
  for (int fleet = 0; fleet < 12; ++fleet) {
    // With replicas one search among so many is cut off, if hardly any rank is as good as equal.
    const bool several = fleet % 2 == 1;
    ManyRanks ranks(random.Next(), kAllListed + 1 + random.Below(several ? 90 : 400), several);
    for (int step = 0; step < 150; ++step) {
      ranks.Change();
      ASSERT_NO_FATAL_FAILURE(ranks.Compare()) << fleet << " " << step;
    }
    decisions += ranks.decisions();
    by_hint += ranks.by_hint();
  }
  EXPECT_GT(decisions, 1000u);
  EXPECT_GT(by_hint, 50u);
}

// A fleet of one model without requests.
class IdleFleet {
 public:
  explicit IdleFleet(size_t ranks, bool several = false)
      : world_{SteeringOptions{.several = several}, 1} {
    for (size_t i = 0; i < ranks; ++i) {
      workers_.push_back(*fleet_.Add({.url = "http://w:" + std::to_string(i)}));
      Fleet::ModelReport report;
      report.models = {"m"};
      fleet_.SetModels(workers_.back()->id(), std::move(report));
      places_.push_back({workers_.back().get(), &workers_.back()->ranks.only()});
    }
    roster_.Assign(places_, Roster::Blocks::kUsed);
  }
  const std::vector<Place>& places() const { return places_; }
  SteeringWorld& world() { return world_; }
  Steering::Choice Decide() {
    roster_.StartTurn();
    const RouteQuestion question{.prompt_tokens = 500, .weights = {}};
    return steering_.Decide(question, roster_, TimePoint{}, Patience::kMayWait);
  }

 private:
  Fleet fleet_{BreakerOptions{}};
  std::vector<std::shared_ptr<Worker>> workers_;
  std::vector<Place> places_;
  Roster roster_;
  SteeringWorld world_;
  Steering steering_{world_, DepthsOf(nullptr), 1};
};

// Loops decide at the same time, each with a roster of its own, and change the loads that they
// read.
TEST(CandidateSearch, IsAskedByManyLoops) {
  constexpr size_t kRanks = 3 * LoadBlock::kMost;
  IdleFleet fleet(kRanks);
  const auto live = [&](uint64_t seed) {
    Steering steering(fleet.world(), DepthsOf(nullptr), seed);
    Roster roster;
    roster.Assign(fleet.places(), Roster::Blocks::kUsed);
    const RouteQuestion question{.prompt_tokens = 500, .weights = {}};
    TimePoint now{std::chrono::seconds(1)};
    for (int i = 0; i < 2000; ++i) {
      now += std::chrono::milliseconds(5);
      roster.StartTurn();
      const auto choice = steering.Decide(question, roster, now, Patience::kMustDecide);
      RankLoad& load = choice.place.rank->load;
      RankLoad::Stay stay;
      const auto kind = i % 2 == 0 ? RankLoad::Kind::kSilent : RankLoad::Kind::kAnnounced;
      load.Enter(stay, kind, 500, 500, now);
      steering.Decide(question, roster, now, Patience::kMustDecide);
      if (i % 3 == 0) load.FirstByte(stay, now);
      load.Leave(stay, now);
    }
  };
  std::vector<std::thread> loops;
  for (uint64_t seed = 1; seed <= 3; ++seed) loops.emplace_back(live, seed);
  for (std::thread& loop : loops) loop.join();
  for (const Place& place : fleet.places()) {
    EXPECT_EQ(place.rank->load.placed().requests, 0u);
    EXPECT_EQ(place.rank->load.block()->waiting(), 0u);
    EXPECT_EQ(place.rank->load.block()->Free(), LoadFloor{});
  }
}

TEST(CandidateSearch, SpreadsOverAllRanksOfAnIdleFleet) {
  constexpr size_t kRanks = 200;
  IdleFleet fleet(kRanks);
  std::map<Rank*, int> times;
  for (int i = 0; i < 100 * static_cast<int>(kRanks); ++i) ++times[fleet.Decide().place.rank];
  EXPECT_EQ(times.size(), kRanks);
  for (const auto& [rank, count] : times) EXPECT_NEAR(count, 100, 60);
}

// Every rank has one request, each with a little more context than the one before.
TEST(CandidateSearch, ReplicasSpreadOverRanksThatAreAsGoodAsEqual) {
  constexpr size_t kRanks = 1000;
  IdleFleet fleet(kRanks, true);
  std::deque<RankLoad::Stay> stays;
  for (size_t i = 0; i < kRanks; ++i) {
    RankLoad& load = fleet.places()[i].rank->load;
    load.Enter(stays.emplace_back(), RankLoad::Kind::kAnnounced, 100, 1000 + i, TimePoint{});
    load.FirstByte(stays.back(), TimePoint{});
  }
  std::map<Rank*, int> times;
  for (int i = 0; i < 2000; ++i) ++times[fleet.Decide().place.rank];
  EXPECT_GT(times.size(), 100u) << "not on the best few, which are the same for all replicas";
  for (size_t i = 0; i < kRanks; ++i) fleet.places()[i].rank->load.Leave(stays[i], TimePoint{});
}

TEST(CandidateSearch, ListsTheBestFewAndCountsTheOthers) {
  IdleFleet fleet(1000);
  const Decision& decision = *fleet.Decide().decision;
  EXPECT_LE(decision.ranks.size(), kBestListed + 1);
  EXPECT_EQ(decision.ranks.size() + decision.others.count, 1000u);
  EXPECT_EQ(decision.places, 1000u);
  EXPECT_EQ(decision.others.lowest, decision.price().cost);
  EXPECT_EQ(decision.margin, 0);
}

}  // namespace
}  // namespace fathom
