#include "router/replicas/index_exchange.h"

#include <gtest/gtest.h>

#include <numeric>

#include "router/index/prefix_index.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kTokensPerBlock = 4;

// Ranks with blocks of which snapshots are made, as an intake does.
class KnownRanks final : public SnapshotTeller {
 public:
  void Add(const RankLabel& label, size_t blocks) {
    auto rank = index_.AddRank(label, seat_);
    std::vector<TokenId> tokens(kTokensPerBlock * blocks, 0);
    std::iota(tokens.begin(), tokens.end(), static_cast<TokenId>(label.worker * 1'000'000));
    std::vector<uint64_t> hashes(blocks);
    std::iota(hashes.begin(), hashes.end(), 1);
    rank->Store({.hashes = hashes, .tokens = tokens}, {});
    ranks_.emplace_back(label, std::move(rank));
  }

  void Export(const RankLabel& rank, size_t most, Told told) override {
    if (busy_ > 0) {
      --busy_;
      return told(Fail(Blame::kOverload, "later"));
    }
    for (const auto& [label, holdings] : ranks_) {
      if (label != rank || HoldingExport::BytesFor(*holdings) > most) continue;
      const SnapshotHead head{.rank = label,
                              .shape = {.size = kTokensPerBlock, .pairs = false},
                              .shape_group = 0,
                              .mark = {.sequence = 9, .fingerprints = {1}}};
      HoldingExport exporting(*holdings, head);
      while (!exporting.Advance(10'000)) {
      }
      return told(exporting.Take());
    }
    told(Fail(Blame::kPeer, "unknown"));
  }
  void SetBusy(size_t exports) { busy_ = exports; }
  void ListRanks(Listed listed) override {
    std::vector<RankLabel> labels;
    for (const auto& [label, holdings] : ranks_) labels.push_back(label);
    listed(std::move(labels));
  }

 private:
  size_t busy_ = 0;  // exports for which there is no memory
  MemoryMeter meter_{size_t{1} << 30};
  Epochs epochs_;
  PrefixIndex index_{{.size = kTokensPerBlock}, epochs_, meter_, 5};
  Epochs::Seat seat_{epochs_};
  std::vector<std::pair<RankLabel, std::unique_ptr<RankHoldings>>> ranks_;
};

class ExchangeTest;

struct Replica final : ReplicaVoice {
  Replica(ExchangeTest& test, std::string name, uint64_t seed, size_t most_bytes);
  void Tell(ReplicaMessage::Content content) override;
  bool TellOne(const std::string& replica, ReplicaMessage::Content content) override;
  const ReplicaPeers& peers() const override { return others; }
  const std::string& id() const override { return name; }

  ExchangeTest& test;
  const std::string name;
  ReplicaPeers others;
  KnownRanks known;
  SnapshotCounts taken;
  bool decides = true;  // on what it is given, at once
  bool awaits = false;  // another one is reached, and was not heard
  IndexExchange exchange;
};

class ExchangeTest : public testing::Test {
 public:
  struct Sent {
    std::string from, to;
    ReplicaMessage::Content content;
    TimePoint due;
  };

 protected:
  Replica& Add(const std::string& name, size_t most_bytes = size_t{64} << 20) {
    replicas_.push_back(std::make_unique<Replica>(*this, name, random_.Next(), most_bytes));
    return *replicas_.back();
  }
  static void Introduce(Replica& to, const Replica& peer, bool informed = true) {
    to.others[peer.name].presence.informed = informed;
  }
  void Run(Duration time) {
    for (const TimePoint end = now_ + time; now_ < end; now_ += milliseconds(1)) {
      while (!posted_.empty()) {
        auto work = std::move(posted_.front());
        posted_.pop_front();
        work();
      }
      std::vector<Sent> arrived;
      std::erase_if(sent_, [&](Sent& sent) {
        if (sent.due > now_) return false;
        arrived.push_back(std::move(sent));
        return true;
      });
      for (Sent& sent : arrived) Deliver(sent);
      if (now_.time_since_epoch() / milliseconds(1) % 5 != 0) continue;
      for (auto& replica : replicas_) replica->exchange.Tick(now_);
    }
  }
  // The answers by worker; null: without a snapshot.
  using Answers = std::map<uint64_t, std::shared_ptr<const HoldingSnapshot>>;
  void Ask(Replica& replica, uint64_t worker, Answers& answers) {
    Ask(replica, worker, answers, patient_);
  }
  void Ask(Replica& replica, uint64_t worker, Answers& answers, std::weak_ptr<const void> asker) {
    replica.exchange.Ask({worker, 0}, std::move(asker),
                         [&answers, &replica, worker](std::shared_ptr<const HoldingSnapshot> s) {
                           EXPECT_FALSE(answers.contains(worker)) << "answered twice";
                           if (s && replica.decides) ++replica.taken.adopted;
                           answers[worker] = std::move(s);
                         });
  }

  void Deliver(Sent& sent) {
    for (auto& replica : replicas_) {
      if (replica->name != sent.to || !replica->others.contains(sent.from)) continue;
      ReplicaMessage message{.group = "g", .origin = sent.from, .content = sent.content};
      replica->exchange.Heard(message, now_);
    }
  }

 public:
  void Send(const std::string& from, const std::string& to, ReplicaMessage::Content content) {
    if (silent_ == from) return;
    if (auto* piece = std::get_if<Piece>(&content); piece != nullptr && damaging_ == from) {
      if (!piece->bytes.empty()) piece->bytes[piece->bytes.size() / 2] ^= 1;
    }
    if (auto* piece = std::get_if<Piece>(&content); piece != nullptr && repeating_ == from) {
      if (piece->pieces > 1 && piece->piece != 0) {
        piece->piece = 0;
        piece->bytes.resize(IndexExchange::kPiece);
      }
    }
    EXPECT_LT(Encode({.group = "g", .origin = "o", .content = content}).size(),
              ReplicaMessage::kMostBytes);
    for (int copies = random_.Unit() < twice_ ? 2 : 1; copies > 0; --copies) {
      if (random_.Unit() < loss_) continue;
      sent_.push_back({from, to, content, now_ + milliseconds(1 + random_.Below(latest_))});
    }
  }
  std::vector<std::unique_ptr<Replica>>& replicas() { return replicas_; }

  std::deque<std::move_only_function<void()>> posted_;
  std::string silent_;     // the replica whose messages are lost
  std::string damaging_;   // whose pieces are changed
  std::string repeating_;  // who sends its first piece for each that is asked for

 protected:
  Random random_{3};
  TimePoint now_{seconds(100)};
  double loss_ = 0;
  double twice_ = 0;
  uint64_t latest_ = 2;  // milliseconds
  std::vector<Sent> sent_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  const std::shared_ptr<const int> patient_ = std::make_shared<const int>();
};

Replica::Replica(ExchangeTest& t, std::string n, uint64_t seed, size_t most_bytes)
    : test(t),
      name(std::move(n)),
      exchange(*this, known, taken,
               [&t](std::move_only_function<void()> work) { t.posted_.push_back(std::move(work)); },
               {.most_bytes = most_bytes, .seed = seed, .models = {"own"}, .awaits_others = [this] {
                  return awaits;
                }}) {}

void Replica::Tell(ReplicaMessage::Content content) {
  for (const auto& other : test.replicas()) test.Send(name, other->name, content);
}
bool Replica::TellOne(const std::string& replica, ReplicaMessage::Content content) {
  test.Send(name, replica, std::move(content));
  return true;
}

TEST_F(ExchangeTest, ANewcomerGetsEveryRankOfAnInformedPeer) {
  Replica& old = Add("old");
  Replica& fresh = Add("new");
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  for (uint64_t worker = 1; worker <= 8; ++worker) old.known.Add({worker, 0}, 40'000);
  Answers answers;
  for (uint64_t worker = 1; worker <= 8; ++worker) Ask(fresh, worker, answers);
  Run(milliseconds(500));
  EXPECT_FALSE(fresh.exchange.informed()) << "it may hear of others yet";
  Run(seconds(2));
  ASSERT_EQ(answers.size(), 8u);
  for (const auto& [worker, snapshot] : answers) {
    ASSERT_TRUE(snapshot != nullptr) << worker;
    EXPECT_EQ(snapshot->head().rank.worker, worker);
    EXPECT_EQ(snapshot->blocks(), 40'000u);
  }
  EXPECT_TRUE(fresh.exchange.informed());
  EXPECT_EQ(fresh.exchange.counts().received, 8u);
  EXPECT_EQ(old.exchange.counts().served, 8u);
  EXPECT_EQ(fresh.exchange.counts().failed, 0u);
}

TEST_F(ExchangeTest, LostRepeatedAndLateMessagesCostTimeOnly) {
  Replica& old = Add("old");
  Replica& fresh = Add("new");
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  for (uint64_t worker = 1; worker <= 6; ++worker) old.known.Add({worker, 0}, 60'000);
  loss_ = 0.1;
  twice_ = 0.1;
  latest_ = 30;
  Answers answers;
  for (uint64_t worker = 1; worker <= 6; ++worker) Ask(fresh, worker, answers);
  Run(seconds(20));
  ASSERT_EQ(answers.size(), 6u);
  for (const auto& [worker, snapshot] : answers) EXPECT_TRUE(snapshot != nullptr) << worker;
  EXPECT_TRUE(fresh.exchange.informed());
}

TEST_F(ExchangeTest, AsksTheNextPeerWhenOneFallsSilentOrHasNothing) {
  Replica& silent = Add("silent");
  Replica& empty = Add("empty");
  Replica& old = Add("old");
  Replica& fresh = Add("new");
  for (Replica* peer : {&silent, &old}) {
    Introduce(fresh, *peer);
    Introduce(*peer, fresh, false);
    peer->known.Add({1, 0}, 100);
  }
  silent_ = "silent";
  Answers answers;
  for (int i = 0; i < 8; ++i) {
    answers.clear();
    Ask(fresh, 1, answers);
    Run(seconds(5));
    ASSERT_TRUE(answers.contains(1));
    EXPECT_TRUE(answers[1] != nullptr);
  }
  EXPECT_GT(fresh.exchange.counts().failed, 0u);
  fresh.others.clear();
  Introduce(fresh, empty);
  Introduce(empty, fresh, false);
  answers.clear();
  Ask(fresh, 1, answers);
  Run(seconds(1));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] == nullptr);
  EXPECT_GT(fresh.exchange.counts().refused, 0u);
}

// The other one looks up names every few seconds, and dials us only then.
TEST_F(ExchangeTest, AwaitsOneThatIsReachedUntilItHasFoundUs) {
  Replica& old = Add("old");
  Replica& fresh = Add("new");
  old.known.Add({1, 0}, 100);
  fresh.awaits = true;
  Answers answers;
  Ask(fresh, 1, answers);
  Run(seconds(8));
  EXPECT_FALSE(fresh.exchange.informed());
  EXPECT_TRUE(answers.empty());
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  Run(seconds(3));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] != nullptr);
  EXPECT_TRUE(fresh.exchange.informed());
}

TEST_F(ExchangeTest, OneThatIsReachedAndNeverHeardIsNotAwaitedForEver) {
  Replica& fresh = Add("new");
  fresh.awaits = true;
  Answers answers;
  Ask(fresh, 1, answers);
  Run(IndexExchange::kMostSettle + IndexExchange::kQuiet + seconds(1));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] == nullptr);
  EXPECT_TRUE(fresh.exchange.informed());
}

// A fleet that is cut by model: most replicas do not follow the rank.
TEST_F(ExchangeTest, ThoseThatServeTheSameModelsAreAskedFirst) {
  Replica& fresh = Add("new");
  for (int i = 0; i < 6; ++i) {
    Replica& other = Add("other" + std::to_string(i));
    Introduce(fresh, other);
    Introduce(other, fresh, false);
  }
  Replica& old = Add("old");
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  fresh.others["old"].presence.models = {"own"};
  old.known.Add({1, 0}, 100);
  Answers answers;
  Ask(fresh, 1, answers);
  Run(seconds(3));
  ASSERT_TRUE(answers[1] != nullptr);
  EXPECT_TRUE(fresh.exchange.informed());
  EXPECT_EQ(fresh.exchange.counts().refused, 0u);
  // If none says so, all are asked: a refusal is no failure.
  fresh.others["old"].presence.models = {};
  old.known.Add({2, 0}, 100);
  Ask(fresh, 2, answers);
  Run(seconds(3));
  EXPECT_TRUE(answers[2] != nullptr);
}

TEST_F(ExchangeTest, RanksOfOtherModelsAreNotAwaited) {
  Replica& fresh = Add("new");
  Replica& other = Add("other");
  Introduce(fresh, other);
  Introduce(other, fresh, false);
  fresh.others["other"].presence.models = {"llama-*"};
  other.known.Add({9, 0}, 100);
  Answers answers;
  Ask(fresh, 1, answers);
  Run(IndexExchange::kSettle + seconds(1));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] == nullptr);
  EXPECT_TRUE(fresh.exchange.informed());
  EXPECT_EQ(fresh.exchange.counts().by_time, 0u);
}

TEST_F(ExchangeTest, ADamagedSnapshotIsNotGiven) {
  Replica& old = Add("old");
  Replica& fresh = Add("new");
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  old.known.Add({1, 0}, 30'000);
  damaging_ = "old";
  Answers answers;
  Ask(fresh, 1, answers);
  Run(seconds(8));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] == nullptr);
  EXPECT_GT(fresh.exchange.counts().failed, 0u);
  EXPECT_TRUE(fresh.exchange.informed()) << "by time";
}

TEST_F(ExchangeTest, WithoutPeersNothingIsAwaitedForLong) {
  Replica& alone = Add("alone");
  Answers answers;
  Ask(alone, 1, answers);
  Run(milliseconds(1000));
  EXPECT_TRUE(answers.empty()) << "peers may be heard yet";
  EXPECT_FALSE(alone.exchange.informed());
  Run(milliseconds(1100));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] == nullptr);
  EXPECT_TRUE(alone.exchange.informed());
  answers.clear();
  Ask(alone, 2, answers);
  Run(milliseconds(20));
  EXPECT_TRUE(answers.contains(2)) << "at once from then on";
}

TEST_F(ExchangeTest, APeerThatLeavesIsReplaced) {
  Replica& first = Add("first");
  Replica& second = Add("second");
  Replica& fresh = Add("new");
  for (Replica* peer : {&first, &second}) {
    Introduce(*peer, fresh, false);
    peer->known.Add({1, 0}, 200'000);
  }
  Introduce(fresh, first);
  Answers answers;
  Ask(fresh, 1, answers);
  Run(milliseconds(8));
  EXPECT_TRUE(answers.empty());
  fresh.others.clear();
  Introduce(fresh, second);
  fresh.exchange.Left("first", now_);
  Run(milliseconds(500));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] != nullptr);
  EXPECT_EQ(second.exchange.counts().served, 1u);
}

TEST_F(ExchangeTest, ASnapshotThatIsTooLargeIsNotTaken) {
  Replica& old = Add("old");
  Replica& fresh = Add("new", 2 << 20);
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  old.known.Add({1, 0}, 100'000);
  Answers answers;
  Ask(fresh, 1, answers);
  Run(seconds(1));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] == nullptr);
}

// Engines without replay that publish nothing.
TEST_F(ExchangeTest, UndecidedSnapshotsAreAwaitedForLonger) {
  Replica& old = Add("old");
  Replica& fresh = Add("new");
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  old.known.Add({1, 0}, 100);
  fresh.decides = false;
  Answers answers;
  Ask(fresh, 1, answers);
  Run(seconds(29));
  ASSERT_TRUE(answers[1] != nullptr);
  EXPECT_FALSE(fresh.exchange.informed());
  ++fresh.taken.dropped;
  Run(milliseconds(10));
  EXPECT_TRUE(fresh.exchange.informed());
  EXPECT_EQ(fresh.exchange.counts().by_time, 0u);
}

TEST_F(ExchangeTest, UndecidedSnapshotsAreNotAwaitedForEver) {
  Replica& old = Add("old");
  Replica& fresh = Add("new");
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  old.known.Add({1, 0}, 100);
  fresh.decides = false;
  Answers answers;
  Ask(fresh, 1, answers);
  Run(seconds(31));
  EXPECT_TRUE(fresh.exchange.informed());
  EXPECT_EQ(fresh.exchange.counts().by_time, 1u);
}

TEST_F(ExchangeTest, APeerThatRepeatsAPieceIsGivenUp) {
  Replica& broken = Add("broken");
  Replica& fresh = Add("new");
  Introduce(fresh, broken);
  Introduce(broken, fresh, false);
  broken.known.Add({1, 0}, 100'000);
  repeating_ = "broken";
  Answers answers;
  Ask(fresh, 1, answers);
  Run(seconds(5));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] == nullptr);
  EXPECT_EQ(fresh.exchange.counts().failed, 1u);
}

TEST_F(ExchangeTest, APeerWithoutMemoryIsAskedAgain) {
  Replica& old = Add("old");
  Replica& fresh = Add("new");
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  for (uint64_t worker = 1; worker <= 2; ++worker) old.known.Add({worker, 0}, 1000);
  old.known.SetBusy(5);
  Answers answers;
  for (uint64_t worker = 1; worker <= 2; ++worker) Ask(fresh, worker, answers);
  Run(seconds(2));
  ASSERT_EQ(answers.size(), 2u);
  for (const auto& [worker, snapshot] : answers) EXPECT_TRUE(snapshot != nullptr) << worker;
  EXPECT_EQ(fresh.exchange.counts().refused, 0u);
  EXPECT_EQ(fresh.exchange.counts().failed, 0u);
}

TEST_F(ExchangeTest, APeerThatStaysWithoutMemoryRefuses) {
  Replica& old = Add("old");
  Replica& fresh = Add("new");
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  old.known.Add({1, 0}, 1000);
  old.known.SetBusy(1'000'000);
  Answers answers;
  Ask(fresh, 1, answers);
  Run(IndexExchange::kPostpone + seconds(1));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] == nullptr);
  EXPECT_EQ(fresh.exchange.counts().refused, 1u);
  EXPECT_EQ(fresh.exchange.counts().failed, 0u);
}

TEST_F(ExchangeTest, SnapshotsAreMadeOnlyForThoseWhoStillWait) {
  Replica& old = Add("old");
  Replica& fresh = Add("new");
  Introduce(fresh, old);
  Introduce(old, fresh, false);
  for (uint64_t worker = 1; worker <= 8; ++worker) old.known.Add({worker, 0}, 40'000);
  Answers answers;
  auto impatient = std::make_shared<const int>();
  for (uint64_t worker = 1; worker <= 8; ++worker) {
    if (worker <= 4) Ask(fresh, worker, answers);
    if (worker > 4) Ask(fresh, worker, answers, impatient);
  }
  Run(milliseconds(1));
  impatient.reset();
  Run(seconds(3));
  ASSERT_EQ(answers.size(), 8u);
  for (const auto& [worker, snapshot] : answers) EXPECT_EQ(snapshot != nullptr, worker <= 4);
  EXPECT_EQ(old.exchange.counts().served, 4u);
  EXPECT_EQ(fresh.exchange.counts().received, 4u);
  EXPECT_EQ(fresh.exchange.counts().without, 4u);
  EXPECT_TRUE(fresh.exchange.informed());
}

TEST_F(ExchangeTest, OneWhoGivesUpFreesThePlaceOfItsSnapshot) {
  Replica& silent = Add("silent");
  Replica& fresh = Add("new");
  Introduce(fresh, silent);
  Introduce(silent, fresh, false);
  silent_ = "silent";
  Answers answers;
  auto impatient = std::make_shared<const int>();
  Ask(fresh, 1, answers, impatient);
  Run(milliseconds(100));
  EXPECT_TRUE(answers.empty());
  impatient.reset();
  Run(milliseconds(6));
  ASSERT_TRUE(answers.contains(1));
  EXPECT_TRUE(answers[1] == nullptr);
  EXPECT_EQ(fresh.exchange.counts().without, 1u);
}

// Whoever is in the group can ask for anything, and send anything.
TEST_F(ExchangeTest, StrangeQuestionsAndPiecesHaveNoEffect) {
  Replica& old = Add("old");
  Replica& strange = Add("strange");
  Introduce(old, strange);
  Introduce(strange, old);
  old.known.Add({1, 0}, 1000);
  Answers answers;
  Ask(old, 5, answers);
  Run(milliseconds(50));
  const auto ask = [&](std::string about, uint64_t question, uint64_t from) {
    struct Ask content{
        .to = "old", .question = question, .about = std::move(about), .rank = {1, 0}, .from = from};
    strange.TellOne("old", content);
  };
  for (uint64_t i = 0; i < 2000; ++i) {
    ask("rank", i, random_.Below(2) == 0 ? 0 : random_.Next());
    ask("rank", i, ~uint64_t{0} / IndexExchange::kPiece + i);
    ask("ranks", i, 0);
    ask("whatever", i, 0);
    strange.TellOne("old", Piece{.to = "old",
                                 .question = random_.Next(),
                                 .piece = random_.Next(),
                                 .pieces = random_.Next(),
                                 .bytes = "x"});
    if (i % 100 == 0) Run(milliseconds(5));
  }
  Run(seconds(1));
  EXPECT_LT(old.exchange.counts().served, 600u) << "a few at a time";
  Run(seconds(10));
}

}  // namespace
}  // namespace fathom
