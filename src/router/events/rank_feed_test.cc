#include "router/events/rank_feed.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

namespace fathom {
namespace {

constexpr TimePoint kNow{std::chrono::seconds(1000)};

// A feed of one rank, and the index that it feeds.
class RankFeedTest : public testing::Test {
 protected:
  void Start(const BlockSizeRules& rules) {
    feed_.reset();
    for (const auto& worker : {worker_, other_}) {
      if (worker) fleet_.Remove(worker->id());
    }
    sizes_ = std::make_unique<BlockSizes>(rules, true, fleet_, log_, kNow);
    worker_ = *fleet_.Add({.url = "http://a:1"});
    other_ = *fleet_.Add({.url = "http://b:1"});
    for (const auto& worker : {worker_, other_}) {
      sizes_->Join(worker, kNow);
      sizes_->Serves(worker->id(), {"m"}, kNow);
      sizes_->Reported(worker->id(), {}, kNow);
    }
    sizes_->Tick(kNow, false);
    status_ = board_.Open(worker_->id(), 0, "here");
    feed_ = std::make_unique<RankFeed>(index_, seat_, worker_, status_, sizes_.get());
  }

  static StoredEvent Stored(uint32_t block_size, TokenId first) {
    StoredEvent event;
    event.block_size = block_size;
    event.hashes = {first};
    event.tokens.resize(block_size);
    std::iota(event.tokens.begin(), event.tokens.end(), first);
    return event;
  }
  void Store(uint32_t block_size, TokenId first) { Apply(Stored(block_size, first)); }
  void Apply(CacheEvent event) { feed_->Apply(std::vector{std::move(event)}, kNow); }

  // Tokens that the index believes the rank to hold of that block and one more.
  size_t Depth(uint32_t block_size, TokenId first) {
    std::vector<TokenId> tokens = Stored(block_size, first).tokens;
    tokens.push_back(1);
    CacheReader reader(index_);
    for (const CacheReader::Found& found : reader.Match(tokens, NamespaceSeed("", ""))) {
      if (found.rank.worker == worker_->id().value()) return found.tokens[0];
    }
    return 0;
  }
  Trust trust() const { return sizes_->StandingOf(worker_->id(), 0).trust; }

  Log log_{STDERR_FILENO, LogLevel::kOff};
  Fleet fleet_{BreakerOptions{}};
  CacheIndex index_{64 << 20, 7};
  Epochs::Seat seat_{index_.epochs()};
  FeedBoard board_;
  std::unique_ptr<BlockSizes> sizes_;
  std::shared_ptr<Worker> worker_, other_;
  std::shared_ptr<FeedStatus> status_;
  std::unique_ptr<RankFeed> feed_;
};

TEST_F(RankFeedTest, IndexesWhatTheAgreementAllows) {
  Start({});
  Store(16, 100);
  EXPECT_EQ(Depth(16, 100), 16u);
  EXPECT_EQ(trust().state, TrustState::kTrusted);
  Store(32, 500);
  EXPECT_EQ(Depth(32, 500), 0u);
  EXPECT_EQ(status_->other_block_size.Get(), 1u);
}

TEST_F(RankFeedTest, FollowsAnEngineThatHasAnotherSizeAllAtOnce) {
  Start({});
  Store(16, 100);
  for (TokenId i = 0; i < 40; ++i) Store(32, 1000 + 100 * i);
  EXPECT_EQ(Depth(16, 100), 0u);
  EXPECT_EQ(Depth(32, 1000 + 100 * 39), 32u);
  EXPECT_EQ(sizes_->SizeOf(worker_->id()).size, 32u);
  Start({.configured = 16});
  Store(16, 100);
  for (TokenId i = 0; i < 40; ++i) Store(32, 1000 + 100 * i);
  EXPECT_EQ(trust().cause, TrustCause::kBlockSizeMismatch) << "it does not stay unnoticed";
}

TEST_F(RankFeedTest, KeepsNothingOfAnotherSizeThanTheOneThatIsSet) {
  Start({.configured = 16});
  for (TokenId i = 0; i < 1000; ++i) Store(32, 100 * i);
  EXPECT_EQ(index_.held(), 0u);
  EXPECT_EQ(status_->mismatched_events.Get(), 1000u);
  EXPECT_EQ(status_->blocks.Get(), 0u);
  EXPECT_EQ(trust().state, TrustState::kDoubted);
  EXPECT_TRUE(worker_->ranks.only().doubted);
}

TEST_F(RankFeedTest, TakesANewSizeOnceTheRankIsEmpty) {
  Start({});
  Store(16, 100);
  Apply(ClearedEvent{});
  Store(32, 500);
  EXPECT_EQ(Depth(16, 100), 0u);
  EXPECT_EQ(Depth(32, 500), 32u);
  feed_->Reset(kNow);
  EXPECT_EQ(trust().state, TrustState::kLearning);
  Store(64, 900);
  EXPECT_EQ(Depth(32, 500), 0u);
  EXPECT_EQ(Depth(64, 900), 64u);
}

TEST_F(RankFeedTest, GivesUpWhatTheAgreementDoesNotAllowAnyMore) {
  Start({});
  sizes_->Reported(other_->id(), {.engine = EngineKind::kVllm, .block_size = 32}, kNow);
  Store(16, 100);
  EXPECT_EQ(Depth(16, 100), 0u) << "the fleet has 32, so the worker is refused";
  sizes_->Leave(other_->id(), kNow);
  Store(16, 100);
  EXPECT_EQ(Depth(16, 100), 16u);
  EXPECT_EQ(fleet_.Current()->Find(worker_->id())->cause, "");
}

TEST_F(RankFeedTest, LeavesTheIndexAtTheNextTickWhenItsWorkerIsRefused) {
  Start({.mixed = false});
  EngineReport report{.engine = EngineKind::kVllm, .block_size = 16};
  sizes_->Reported(worker_->id(), report, kNow);
  sizes_->Reported(other_->id(), report, kNow);
  Store(32, 100);  // its report was stale: the events win
  EXPECT_EQ(Depth(32, 100), 32u);
  // Two to one: the others' blocks really have 16 tokens.
  const auto third = *fleet_.Add({.url = "http://c:1"});
  sizes_->Join(third, kNow);
  sizes_->Serves(third->id(), {"m"}, kNow);
  sizes_->Reported(third->id(), report, kNow);
  sizes_->Proven(*other_, 0, 16, kNow);
  sizes_->Proven(*third, 0, 16, kNow);
  feed_->Tick(kNow);
  EXPECT_EQ(index_.held(), 0u);
  EXPECT_EQ(trust().cause, TrustCause::kBlockSizeConflict);
}

// What a replay brings happened before: it is indexed, and is no traffic.
TEST_F(RankFeedTest, KeepsReplaysApartFromWhatTheEngineDoesNow) {
  Start({});
  feed_->SetReplaying(true);
  feed_->Published(kNow - std::chrono::hours(1));
  Store(16, 100);
  Store(16, 200);
  Apply(RemovedEvent{.hashes = {200}});
  EXPECT_EQ(Depth(16, 100), 16u);
  EXPECT_EQ(status_->stored_blocks.Get(), 2u);
  EXPECT_EQ(status_->live_stored.Get(), 0u);
  EXPECT_EQ(status_->live_removed.Get(), 0u);
  const auto age = [&] { return (kNow - TimePoint(Duration(status_->last_event.load()))); };
  EXPECT_EQ(age(), std::chrono::hours(1));
  feed_->SetReplaying(false);
  Store(16, 300);
  Apply(RemovedEvent{.hashes = {300, 999}});
  EXPECT_EQ(status_->live_stored.Get(), 1u);
  EXPECT_EQ(status_->live_removed.Get(), 2u);
  EXPECT_EQ(age(), Duration::zero());
  feed_->Published(kNow - std::chrono::hours(2));  // a gap is repaired
  EXPECT_EQ(age(), Duration::zero());
}

TEST_F(RankFeedTest, LeavesTheIndexAtOnceWhenItIsClosed) {
  Start({});
  Store(16, 1000);
  EXPECT_EQ(Depth(16, 1000), 16u);
  feed_->Close();
  EXPECT_EQ(Depth(16, 1000), 0u);
  Store(16, 2000);
  EXPECT_EQ(Depth(16, 2000), 0u) << "what comes later is not applied";
}

// --- snapshots
// ------------------------------------------------------------------------------------

TEST_F(RankFeedTest, TellsAnotherFeedWhatItHolds) {
  Start({});
  EXPECT_EQ(feed_->ExportBytes(), 0u);
  Store(16, 100);
  Store(16, 300);
  feed_->BeginExport({.sequence = 4, .fingerprints = {9}});
  std::optional<std::string> bytes;
  while (!bytes) bytes = feed_->ExportSome(1);
  EXPECT_FALSE(feed_->exporting());
  auto opened = HoldingSnapshot::Open(*bytes);
  ASSERT_TRUE(opened.has_value());
  const auto snapshot = std::make_shared<const HoldingSnapshot>(*std::move(opened));
  feed_->Reset(kNow);
  EXPECT_EQ(Depth(16, 100), 0u);
  ASSERT_TRUE(feed_->BeginImport(snapshot, kNow));
  while (feed_->importing()) EXPECT_TRUE(feed_->ImportSome(1));
  EXPECT_EQ(Depth(16, 100), 16u);
  EXPECT_EQ(Depth(16, 300), 16u);
  EXPECT_EQ(status_->block_size.Get(), 16u);
  EXPECT_EQ(trust().state, TrustState::kTrusted);
}

TEST_F(RankFeedTest, AnythingThatChangesTheRankEndsItsExport) {
  Start({});
  Store(16, 100);
  feed_->BeginExport({.sequence = 4, .fingerprints = {9}});
  Store(16, 300);
  EXPECT_FALSE(feed_->exporting());
  feed_->BeginExport({.sequence = 5, .fingerprints = {9}});
  feed_->Reset(kNow);
  EXPECT_FALSE(feed_->exporting());
}

TEST_F(RankFeedTest, RefusesASnapshotOfAnotherRankOrSize) {
  Start({});
  Store(16, 100);
  feed_->BeginExport({.sequence = 4, .fingerprints = {9}});
  auto opened = HoldingSnapshot::Open(feed_->ExportSome(1000).value());
  ASSERT_TRUE(opened.has_value());
  const auto snapshot = std::make_shared<const HoldingSnapshot>(*std::move(opened));
  EXPECT_FALSE(feed_->BeginImport(snapshot, kNow)) << "it has blocks already";
  Start({.configured = 32});
  EXPECT_FALSE(feed_->BeginImport(snapshot, kNow));
  Start({});
  feed_ = std::make_unique<RankFeed>(index_, seat_, other_, board_.Open(other_->id(), 0, "there"),
                                     sizes_.get());
  EXPECT_FALSE(feed_->BeginImport(snapshot, kNow));
}

}  // namespace
}  // namespace fathom
