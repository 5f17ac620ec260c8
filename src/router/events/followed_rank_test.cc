#include "router/events/followed_rank.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "codec/msgpack_writer.h"
#include "io/net/zmq.h"
#include "testing/loop_thread.h"

namespace fathom {
namespace {

constexpr uint32_t kBlockTokens = 16;

// One prompt of the engine, stored with one batch.
std::vector<TokenId> PromptOf(uint64_t number, size_t blocks) {
  std::vector<TokenId> tokens(blocks * kBlockTokens);
  std::iota(tokens.begin(), tokens.end(), static_cast<TokenId>(number * 1'000'000));
  return tokens;
}

std::string StoringBatch(uint64_t number, size_t blocks) {
  MsgpackWriter w;
  w.Array(3).Double(static_cast<double>(number)).Array(1).Array(6).String("BlockStored");
  w.Array(static_cast<uint32_t>(blocks));
  for (size_t i = 0; i < blocks; ++i) w.Unsigned(number * 1'000'000 + i + 1);
  w.Nil();
  const std::vector<TokenId> tokens = PromptOf(number, blocks);
  w.Array(static_cast<uint32_t>(tokens.size()));
  for (const TokenId token : tokens) w.Unsigned(token);
  w.Unsigned(kBlockTokens).Nil().Unsigned(0);
  return w.Take();
}

std::string NumberOf(uint64_t sequence) {
  std::string bytes;
  for (int at = 56; at >= 0; at -= 8) bytes.push_back(static_cast<char>(sequence >> at));
  return bytes;
}

// Answers when it is told to.
struct SlowSource final : SnapshotSource {
  void Ask(const RankLabel& rank, std::weak_ptr<const void> asker, Answer answer) override {
    asked.push_back(rank);
    askers.push_back(std::move(asker));
    answers.push_back(std::move(answer));
  }
  void AnswerAll(const std::shared_ptr<const HoldingSnapshot>& snapshot) {
    for (Answer& answer : std::exchange(answers, {})) answer(snapshot);
  }
  std::vector<RankLabel> asked;
  std::vector<std::weak_ptr<const void>> askers;
  std::vector<Answer> answers;
};

// What a router has to follow a rank.
struct Router {
  Router(Loop& loop, Resolver& resolver, Log& log, SnapshotSource* source, Duration wait,
         std::string replay = "")
      : worker(*fleet.Add({.url = "http://a:1"})),
        sizes(BlockSizeRules{}, true, fleet, log, TimePoint{}),
        context{.loop = loop,
                .budget = budget,
                .resolver = resolver,
                .index = index,
                .seat = seat,
                .board = board,
                .sizes = sizes,
                .log = log,
                .options = IntakeOptions{.snapshot_wait = wait},
                .snapshot_counts = counts,
                .snapshots = source} {
    sizes.Join(worker, TimePoint{});
    sizes.Serves(worker->id(), {"m"}, TimePoint{});
    sizes.Reported(worker->id(), {}, TimePoint{});
    rank.emplace(context, StreamOwner{worker, nullptr}, 0, "here", std::move(replay));
    rank->status().connected.store(true, std::memory_order_relaxed);
  }
  ~Router() { rank->Stop(); }

  size_t DepthOf(uint64_t number, size_t blocks) {
    std::vector<TokenId> tokens = PromptOf(number, blocks);
    tokens.push_back(1);
    CacheReader reader(index);
    for (const auto& found : reader.Match(tokens, NamespaceSeed("", ""))) {
      return found.tokens[0] / kBlockTokens;
    }
    return 0;
  }

  Fleet fleet{BreakerOptions{}};
  std::shared_ptr<Worker> worker;
  CacheIndex index{64 << 20, 7};
  Epochs::Seat seat{index.epochs()};
  FeedBoard board;
  BlockSizes sizes;
  ByteBudget budget{64 << 20};
  SnapshotCounts counts;
  IntakeContext context;
  std::optional<FollowedRank> rank;
};

class FollowedRankTest : public testing::Test {
 protected:
  Task<void> Feed(Router& router, uint64_t sequence, size_t blocks) {
    const std::string number = NumberOf(sequence);
    const std::string payload = StoringBatch(sequence, blocks);
    const ZmqMessage message{std::string_view("topic"), std::string_view(number),
                             std::string_view(payload)};
    auto feeding = router.rank->Feed(message);
    co_await feeding;
  }
  // Answers one question with the batches that an engine still has.
  Task<void> Replay(ZmqSocket& engine, uint64_t first, uint64_t end) {
    ZmqMessage asked;
    const IoStatus heard = co_await engine.Receive(asked, loop_.now() + std::chrono::seconds(20));
    EXPECT_EQ(heard, IoStatus::kOk);
    if (heard != IoStatus::kOk) co_return;
    for (uint64_t i = first; i < end; ++i) {
      const std::string payload = StoringBatch(i, 100);
      const ZmqMessage batch = {asked[0], "", NumberOf(i), payload};
      EXPECT_TRUE(engine.Send(batch));
    }
    const ZmqMessage last = {asked[0], "", NumberOf(kEndOfReplay), ""};
    EXPECT_TRUE(engine.Send(last));
  }

  // The old router has three batches.
  Task<std::shared_ptr<const HoldingSnapshot>> SnapshotOfOld() {
    old_->rank->Connected();
    for (uint64_t i = 0; i < 3; ++i) {
      auto feeding = Feed(*old_, i, 100);
      co_await feeding;
    }
    auto exporting = old_->rank->Export(1 << 20);
    const Result<std::string> bytes = co_await exporting;
    EXPECT_TRUE(bytes.has_value());
    auto opened = HoldingSnapshot::Open(bytes.value_or(""));
    EXPECT_TRUE(opened.has_value());
    co_return std::make_shared<const HoldingSnapshot>(*std::move(opened));
  }
  // The newcomer asks for it and gets it.
  Task<void> Offer() {
    auto exporting = SnapshotOfOld();
    const std::shared_ptr<const HoldingSnapshot> snapshot = co_await exporting;
    fresh_->rank->Connected();
    EXPECT_TRUE(fresh_->rank->repairing());
    EXPECT_EQ(source_.asked.size(), 1u);
    source_.AnswerAll(snapshot);
  }
  // The newcomer goes on with the live batch `next`.
  Task<void> Pass(uint64_t next) {
    auto offering = Offer();
    co_await offering;
    auto repairing = fresh_->rank->Repair();
    co_await repairing;
    EXPECT_FALSE(fresh_->rank->repairing());
    EXPECT_EQ(fresh_->DepthOf(0, 100), 0u) << "nothing has proven the snapshot yet";
    auto feeding = Feed(*fresh_, next, 100);
    co_await feeding;
  }
  Task<void> StopUndecided() {
    auto offering = Offer();
    co_await offering;
    auto repairing = fresh_->rank->Repair();
    co_await repairing;
    EXPECT_EQ(fresh_->counts.dropped, 0u);
    fresh_->rank->Stop();
  }
  Task<void> WaitInVain() {
    fresh_->rank->Connected();
    auto repairing = fresh_->rank->Repair();
    co_await repairing;
    EXPECT_FALSE(fresh_->rank->repairing());
    EXPECT_TRUE(source_.askers.at(0).expired());
    auto feeding = Feed(*fresh_, 7, 10);
    co_await feeding;
    auto exporting = SnapshotOfOld();
    const std::shared_ptr<const HoldingSnapshot> late = co_await exporting;
    source_.AnswerAll(late);
    while (fresh_->counts.dropped == 0) co_await loop_.Sleep(std::chrono::milliseconds(1));
  }

  // The engine no longer has the snapshot's batch, and publishes the next one only much later.
  Task<void> GiveUpAndGoOn(ZmqSocket& engine) {
    auto offering = Offer();
    co_await offering;
    co_await loop_.Sleep(std::chrono::milliseconds(1));  // the answer is here in time
    Spawn(Replay(engine, 5, 7));
    auto repairing = fresh_->rank->Repair();
    co_await repairing;
    EXPECT_FALSE(fresh_->rank->repairing());
    while (!fresh_->rank->repairing()) {
      fresh_->rank->Tick();
      co_await loop_.Sleep(std::chrono::milliseconds(1));
    }
    Spawn(Replay(engine, 5, 7));
    auto feeding = Feed(*fresh_, 7, 100);
    co_await feeding;
  }
  // An export that is refused before the loop's next turn.
  Task<void> ExpectRefusedAtOnce(FollowedRank& rank) {
    bool turned = false;
    loop_.Post([&] { turned = true; });
    auto exporting = rank.Export(1 << 20);
    const Result<std::string> bytes = co_await exporting;
    EXPECT_FALSE(bytes.has_value());
    EXPECT_FALSE(turned);
    while (!turned) co_await loop_.Sleep(Duration(1));
  }
  // Its own stream waits for the answer of another router.
  Task<void> AskOneThatAsksItself() {
    fresh_->rank->Connected();
    auto refusing = ExpectRefusedAtOnce(*fresh_->rank);
    co_await refusing;
    source_.AnswerAll(nullptr);
    auto repairing = fresh_->rank->Repair();
    co_await repairing;
  }
  Task<void> AskWhileALargeBatchIsApplied() {
    FollowedRank& rank = *old_->rank;
    rank.Connected();
    auto feeding = Feed(*old_, 0, 10);
    co_await feeding;
    const std::string payload = StoringBatch(1, 5000);
    const ZmqMessage message{std::string_view("topic"), std::string_view("\0\0\0\0\0\0\0\1", 8),
                             std::string_view(payload)};
    rank.Message(message);
    EXPECT_TRUE(rank.applying());
    loop_.Post([&rank] { Spawn(rank.ApplyRest()); });
    auto exporting = rank.Export(8 << 20);
    const Result<std::string> bytes = co_await exporting;
    EXPECT_TRUE(bytes.has_value());
    EXPECT_EQ(HoldingSnapshot::Open(bytes.value_or(""))->blocks(), 5010u);
  }

  Log log_{STDERR_FILENO, LogLevel::kOff};
  Resolver resolver_;
  Loop loop_;
  SlowSource source_;
  std::unique_ptr<Router> old_ = std::make_unique<Router>(loop_, resolver_, log_, nullptr, kNoTime);
  std::unique_ptr<Router> fresh_ =
      std::make_unique<Router>(loop_, resolver_, log_, &source_, std::chrono::hours(1));
  static constexpr Duration kNoTime{};
};

TEST_F(FollowedRankTest, GoesOnFromTheSnapshotOfAnotherRouter) {
  RunToEnd(loop_, [this] { return Pass(3); });
  for (uint64_t number = 0; number < 4; ++number) EXPECT_EQ(fresh_->DepthOf(number, 100), 100u);
  EXPECT_EQ(fresh_->counts.adopted, 1u);
  EXPECT_EQ(fresh_->counts.blocks, 300u);
  EXPECT_TRUE(fresh_->rank->tellable());
}

TEST_F(FollowedRankTest, DropsASnapshotThatDoesNotFitTheEvents) {
  RunToEnd(loop_, [this] { return Pass(9); });
  EXPECT_EQ(fresh_->DepthOf(0, 100), 0u);
  EXPECT_EQ(fresh_->DepthOf(9, 100), 100u);
  EXPECT_EQ(fresh_->counts.dropped, 1u);
}

TEST_F(FollowedRankTest, WithoutAnAnswerTheStreamIsFollowedAfterATime) {
  fresh_ =
      std::make_unique<Router>(loop_, resolver_, log_, &source_, std::chrono::milliseconds(20));
  RunToEnd(loop_, [this] { return WaitInVain(); });
  EXPECT_EQ(fresh_->DepthOf(7, 10), 10u);
}

TEST_F(FollowedRankTest, ARankThatStopsDropsItsSnapshot) {
  RunToEnd(loop_, [this] { return StopUndecided(); });
  EXPECT_EQ(fresh_->counts.dropped, 1u);
}

TEST_F(FollowedRankTest, ASnapshotLeavesHalfOfTheMemoryToMessages) {
  ByteHolder others(fresh_->budget);
  others.HoldAnyway(fresh_->budget.most() / 2);
  RunToEnd(loop_, [this] { return Pass(3); });
  EXPECT_EQ(fresh_->counts.dropped, 1u);
  EXPECT_EQ(fresh_->DepthOf(0, 100), 0u);
  EXPECT_EQ(fresh_->DepthOf(3, 100), 100u);
  EXPECT_EQ(fresh_->budget.used(), others.held());
}

TEST_F(FollowedRankTest, AReplayThatWasBegunMeanwhilePrecedesTheNextMessage) {
  ZmqContext context;
  const auto engine = *ZmqSocket::Open(context, loop_, ZmqType::kRouter, {});
  fresh_ = std::make_unique<Router>(loop_, resolver_, log_, &source_, std::chrono::milliseconds(20),
                                    *engine->Bind("tcp://127.0.0.1:0"));
  RunToEnd(loop_, [&] { return GiveUpAndGoOn(*engine); });
  EXPECT_EQ(fresh_->counts.dropped, 1u);
  for (uint64_t number = 5; number < 8; ++number) EXPECT_EQ(fresh_->DepthOf(number, 100), 100u);
}

TEST_F(FollowedRankTest, OneThatWaitsForAnAnswerItselfRefusesAtOnce) {
  RunToEnd(loop_, [this] { return AskOneThatAsksItself(); });
}

TEST_F(FollowedRankTest, AnExportWaitsForTheBatchThatIsBeingApplied) {
  RunToEnd(loop_, [this] { return AskWhileALargeBatchIsApplied(); });
}

}  // namespace
}  // namespace fathom
