#include "router/fleet/trust_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TrustKeeperTest : public testing::Test {
 protected:
  TrustKeeperTest() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    read_ = ends[0];
    write_ = ends[1];
    log_ = std::make_unique<Log>(write_);
    sizes_ = std::make_unique<BlockSizes>(BlockSizeRules{}, true, fleet_, *log_, kTestBegin);
    keeper_ =
        std::make_unique<TrustKeeper>(TrustRules{}, fleet_, *sizes_, board_, TokenPieces{}, *log_);
  }
  ~TrustKeeperTest() override {
    close(read_);
    close(write_);
  }

  std::shared_ptr<Worker> Join(const std::string& url, std::optional<bool> caching = {}) {
    auto worker = *fleet_.Add({.url = url});
    sizes_->Join(worker, now_);
    sizes_->Serves(worker->id(), {"m"}, now_);
    Report(*worker, caching);
    fleet_.SetHealthy(worker->id());
    sizes_->Tick(now_, false);
    return worker;
  }
  void Report(Worker& worker, std::optional<bool> caching) {
    EngineReport report{.engine = EngineKind::kVllm, .block_size = 16};
    report.prefix_caching = caching;
    worker.report.Publish(report, now_);
    sizes_->Reported(worker.id(), report, now_);
  }
  // Its events arrive, and it is trusted.
  std::shared_ptr<FeedStatus> Follow(const Worker& worker) {
    auto feed = board_.Open(worker.id(), 0, "tcp://a:5557");
    sizes_->Proven(worker, 0, 16, now_);
    feed->batches.Set(1);
    return feed;
  }
  void Pass(Duration duration) {
    for (const TimePoint end = now_ + duration; now_ < end;) {
      now_ += TrustKeeper::kInterval;
      keeper_->Tick(now_);
    }
  }
  void Tick() { Pass(TrustKeeper::kInterval); }
  // Switches the cache of a worker off, and on again after a moment.
  void Flicker(Worker& worker) {
    Report(worker, false);
    Tick();
    Report(worker, true);
    Tick();
  }
  TrustKeeper::Standing StandingOf(const Worker& worker) {
    return keeper_->StandingOf(worker.id(), 0);
  }
  TrustCause CauseOf(const Worker& worker) { return StandingOf(worker).trust.cause; }
  std::string Metrics() {
    Exposition out;
    keeper_->Collect(*fleet_.Current(), out);
    return out.Text();
  }
  // The log output since the last call.
  std::string Logged() {
    std::string text(1 << 16, '\0');
    log_->Error("end");
    text.resize(static_cast<size_t>(read(read_, text.data(), text.size())));
    return text.substr(0, text.rfind('\n', text.size() - 2) + 1);
  }
  static size_t Lines(const std::string& text, std::string_view about) {
    size_t lines = 0;
    for (size_t at = 0; (at = text.find(about, at)) != std::string::npos; ++at) ++lines;
    return lines;
  }

  Fleet fleet_{BreakerOptions{}};
  FeedBoard board_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<BlockSizes> sizes_;
  std::unique_ptr<TrustKeeper> keeper_;
  TimePoint now_ = kTestBegin;
  int read_ = -1, write_ = -1;
};

TEST_F(TrustKeeperTest, RepeatsWhatIsAgreedWhileAllIsWell) {
  const auto worker = Join("http://a:1");
  Tick();
  EXPECT_EQ(StandingOf(*worker).trust.state, TrustState::kLearning);
  const auto feed = Follow(*worker);
  Logged();
  Tick();
  EXPECT_EQ(StandingOf(*worker).trust.state, TrustState::kTrusted);
  Pass(minutes(3));
  EXPECT_EQ(Logged(), "") << "others speak of block sizes";
  EXPECT_TRUE(worker->ranks.only().witness.trusted());
  EXPECT_TRUE(keeper_->AllDoubted().empty());
}

TEST_F(TrustKeeperTest, KnowsSinceWhenARankIsProbed) {
  Pass(minutes(5));
  const TimePoint joined = now_;
  auto worker = *fleet_.Add({.url = "http://a:1"});
  sizes_->Join(worker, now_);
  EXPECT_EQ(StandingOf(*worker).trust.since, joined);
  EXPECT_EQ(keeper_->StandingOf(worker->id(), 3).trust.since, joined) << "of a rank not known yet";
  Pass(minutes(1));
  EXPECT_EQ(StandingOf(*worker).trust.state, TrustState::kProbing);
  EXPECT_EQ(StandingOf(*worker).trust.since, joined);
}

// A router that has just started hears hours of stores and removals within a second.
TEST_F(TrustKeeperTest, DoesNotTakeAReplayForChurn) {
  const auto worker = Join("http://a:1");
  const auto feed = Follow(*worker);
  feed->stored_blocks.Set(200'000);
  feed->removed_blocks.Set(100'000);
  worker->ranks.only().witness.Pulse({.removed = 100'000, .lives = 0});
  Tick();
  Logged();
  feed->live_stored.Set(60);
  feed->live_removed.Set(60);
  for (uint32_t i = 0; i < ChurnWatch::kRequests; ++i) {
    worker->ranks.only().witness.Returned(100, 0, now_);
  }
  Pass(seconds(60));
  EXPECT_EQ(CauseOf(*worker), TrustCause::kChurn);
  const std::string evidence = StandingOf(*worker).words.evidence;
  EXPECT_THAT(evidence, HasSubstr("; 60 blocks stored per minute, 60 removed;")) << evidence;
}

TEST_F(TrustKeeperTest, SaysOnceWhatChangedWithCauseEvidenceCostAndFix) {
  const auto worker = Join("http://a:1");
  const auto feed = Follow(*worker);
  Tick();
  Logged();
  worker->ranks.only().witness.Wasted(320, now_);
  Report(*worker, false);
  Pass(minutes(3));
  const std::string logged = Logged();
  EXPECT_THAT(logged, AllOf(HasSubstr("WARN"), HasSubstr("A rank is doubted: prefix_caching_off"),
                            HasSubstr("url=http://a:1"), HasSubstr("dp_rank=0"),
                            HasSubstr("the engine reports that its prefix caching is off"),
                            HasSubstr("cost_tokens=320"),
                            HasSubstr("start vLLM without --no-enable-prefix-caching")));
  EXPECT_EQ(Lines(logged, "\n"), 1u) << logged;
  Report(*worker, true);
  Pass(minutes(3));
  const std::string mended = Logged();
  EXPECT_THAT(mended,
              AllOf(HasSubstr("A rank is trusted again"), HasSubstr("was=prefix_caching_off"),
                    HasSubstr("for_seconds=180"), HasSubstr("cost_tokens=320")));
  EXPECT_EQ(Lines(mended, "\n"), 1u) << mended;
}

TEST_F(TrustKeeperTest, TellsEverybodyWhoAsks) {
  const auto a = Join("http://a:1", false);
  const auto b = Join("http://b:1");
  const auto feed = Follow(*b);
  Tick();
  const auto standing = StandingOf(*a);
  EXPECT_EQ(standing.trust.state, TrustState::kDoubted);
  EXPECT_EQ(standing.trust.cause, TrustCause::kPrefixCachingOff);
  EXPECT_EQ(standing.trust.since, now_);
  EXPECT_NE(standing.words.evidence, "");
  EXPECT_NE(standing.words.fix, "");
  EXPECT_EQ(standing.credit[0], 0);
  const auto doubted = keeper_->AllDoubted();
  ASSERT_EQ(doubted.size(), 1u);
  EXPECT_EQ(doubted[0].url, "http://a:1");
  EXPECT_EQ(doubted[0].cause, TrustCause::kPrefixCachingOff);
  const std::string of_a =
      "kv_router_rank_trust{worker=\"" + a->id_text() + "\",dp_rank=\"0\",state=";
  const std::string of_b =
      "kv_router_rank_trust{worker=\"" + b->id_text() + "\",dp_rank=\"0\",state=";
  EXPECT_THAT(Metrics(),
              AllOf(HasSubstr(of_a + "\"doubted\"} 1"), HasSubstr(of_a + "\"trusted\"} 0"),
                    HasSubstr(of_b + "\"doubted\"} 0"), HasSubstr(of_b + "\"trusted\"} 1"),
                    HasSubstr("cause=\"prefix_caching_off\"")));
}

TEST_F(TrustKeeperTest, CountsWhatRepeatsAndTellsOfItOnceAMinute) {
  const auto worker = Join("http://a:1");
  const auto feed = Follow(*worker);
  Tick();
  Logged();
  for (int i = 0; i < 10; ++i) Flicker(*worker);
  const std::string at_first = Logged();
  EXPECT_EQ(Lines(at_first, "A rank is doubted"), 1u);
  EXPECT_EQ(Lines(at_first, "A rank is trusted again"), 1u);
  EXPECT_EQ(Lines(at_first, "\n"), 2u) << at_first;
  Pass(minutes(1));
  const std::string later = Logged();
  EXPECT_THAT(later, AllOf(HasSubstr("doubted repeatedly"), HasSubstr("cause=prefix_caching_off"),
                           HasSubstr("times=9"), HasSubstr("state=trusted")));
  EXPECT_EQ(Lines(later, "\n"), 1u) << later;
  Flicker(*worker);
  EXPECT_EQ(Logged(), "") << "it has just been told";
  Pass(minutes(1));
  EXPECT_THAT(Logged(), HasSubstr("times=1"));
  Pass(minutes(5));
  EXPECT_EQ(Logged(), "");
  Flicker(*worker);
  EXPECT_EQ(Lines(Logged(), "A rank is doubted"), 1u) << "it is news again";
}

TEST_F(TrustKeeperTest, SaysEachCauseOfItsOwn) {
  const auto worker = Join("http://a:1");
  const auto feed = Follow(*worker);
  Tick();
  Logged();
  feed->unsupported_groups.Set(1);
  Tick();
  Report(*worker, false);  // the deeper cause is logged, too
  Tick();
  const std::string logged = Logged();
  EXPECT_EQ(Lines(logged, "A rank is doubted: unsupported_groups"), 1u);
  EXPECT_EQ(Lines(logged, "A rank is doubted: prefix_caching_off"), 1u);
}

// The agreed state overrides the findings, also between two ticks; and an exclusion is not logged
// as a recovery.
TEST_F(TrustKeeperTest, LeavesBlockSizesAndIllnessToOthers) {
  const auto other = Join("http://b:1");
  const auto feed = Follow(*other);
  const auto worker = Join("http://a:1", false);
  Tick();
  ASSERT_EQ(CauseOf(*worker), TrustCause::kPrefixCachingOff);
  sizes_->Failed(worker->id(), now_);
  sizes_->Reported(worker->id(), {.engine = EngineKind::kVllm, .block_size = 32}, now_);
  const auto standing = StandingOf(*worker);
  EXPECT_EQ(standing.trust.state, TrustState::kExcluded);
  EXPECT_EQ(standing.trust.cause, TrustCause::kBlockSizeConflict);
  EXPECT_THAT(standing.words.evidence, HasSubstr("blocks of 32 tokens"));
  Logged();
  Pass(minutes(2));
  EXPECT_EQ(CauseOf(*worker), TrustCause::kBlockSizeConflict);
  EXPECT_EQ(Logged(), "");
}

TEST_F(TrustKeeperTest, GathersWhatTheStreamSays) {
  const auto worker = Join("http://a:1");
  const auto feed = Follow(*worker);
  Tick();
  feed->lost_batches.Set(4);
  feed->gaps.Set(1);
  Tick();
  EXPECT_EQ(CauseOf(*worker), TrustCause::kEventGap);
  EXPECT_THAT(StandingOf(*worker).words.evidence, HasSubstr("4 event batches were lost in 1 gaps"));
  Pass(GapWatch::kWhole);
  EXPECT_EQ(CauseOf(*worker), TrustCause::kNone);
}

TEST_F(TrustKeeperTest, SaysWhyAnEngineIsSilent) {
  const auto worker = Join("http://a:1");
  Rank& rank = worker->ranks.only();
  Tick();
  Logged();
  board_.SetProblem(worker->id(), {.kind = NoFeed::kDialsOut, .text = "bind it"});
  for (uint64_t i = 0; i < SilenceWatch::kRequests; ++i) {
    rank.witness.Served({.has_block = true}, now_);
  }
  Pass(seconds(5));
  EXPECT_THAT(Logged(), AllOf(HasSubstr("A rank is doubted: no_events"),
                              HasSubstr("instead of binding it"), HasSubstr("bind it")));
  const auto feed = Follow(*worker);
  Tick();
  EXPECT_THAT(Logged(), AllOf(HasSubstr("A rank is trusted again"), HasSubstr("was=no_events")));
}

// The engine itself says that there will be none, so no request is needed to find out.
TEST_F(TrustKeeperTest, DoubtsARankAtOnceWhosePublisherIsOff) {
  const auto worker = Join("http://a:1");
  Tick();
  Logged();
  board_.SetProblem(worker->id(), {.kind = NoFeed::kPublisherOff, .text = "off"});
  Tick();
  EXPECT_EQ(CauseOf(*worker), TrustCause::kNoEvents);
  EXPECT_EQ(StandingOf(*worker).words.evidence, "the engine reports that its publisher is off");
  EXPECT_THAT(Logged(), AllOf(HasSubstr("A rank is doubted: no_events"),
                              HasSubstr("enable_kv_cache_events"), HasSubstr("replay_endpoint")));
  board_.SetProblem(worker->id(), {});
  const auto feed = Follow(*worker);
  Tick();
  EXPECT_THAT(Logged(), AllOf(HasSubstr("A rank is trusted again"), HasSubstr("was=no_events")));
}

// A preempted request reports no cached tokens, and the engine's metrics show the preemption.
TEST_F(TrustKeeperTest, HearsOfPreemptions) {
  for (const bool preempts : {false, true}) {
    const auto worker = Join(preempts ? "http://a:1" : "http://b:1");
    Rank& rank = worker->ranks.only();
    Tick();
    for (size_t i = 0; i < ReuseWatch::kRepeats; ++i) {
      rank.witness.Served({.repeated = 160, .cached = 0, .sent = now_}, now_);
    }
    EngineReport report{.engine = EngineKind::kVllm, .block_size = 16};
    report.loads = {{.rank = 0, .preemptions = preempts ? 1u : 0u}};
    worker->report.Publish(report, now_);
    Pass(RankTrust::kSettling);
    EXPECT_EQ(CauseOf(*worker), preempts ? TrustCause::kNone : TrustCause::kPrefixCachingOff);
  }
}

TEST_F(TrustKeeperTest, ForgetsWorkersThatLeft) {
  const auto worker = Join("http://a:1", false);
  Tick();
  ASSERT_EQ(CauseOf(*worker), TrustCause::kPrefixCachingOff);
  const WorkerId id = worker->id();
  sizes_->Leave(id, now_);
  ASSERT_TRUE(fleet_.Remove(id));
  Tick();
  EXPECT_EQ(keeper_->StandingOf(id, 0).trust.cause, TrustCause::kNone);
  EXPECT_THAT(Metrics(), Not(HasSubstr("kv_router_rank_trust{")));
  Logged();
  Join("http://a:1", false);
  Tick();
  EXPECT_THAT(Logged(), HasSubstr("A rank is doubted")) << "it is another one";
}

TEST_F(TrustKeeperTest, CanBeAskedFromManyThreads) {
  const auto worker = Join("http://a:1", false);
  const auto feed = Follow(*worker);
  Tick();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        EXPECT_EQ(CauseOf(*worker), TrustCause::kPrefixCachingOff);
        EXPECT_EQ(keeper_->AllDoubted().size(), 1u);
        EXPECT_FALSE(Metrics().empty());
      }
    });
  }
  for (int n = 0; n < 200; ++n) keeper_->Tick(now_);
}

TEST_F(TrustKeeperTest, JudgesTheRanksOfALargeFleetInTurn) {
  Log silent(write_, LogLevel::kOff);  // thousands of lines would fill the pipe
  TrustKeeper keeper(TrustRules{}, fleet_, *sizes_, board_, TokenPieces{}, silent);
  constexpr uint32_t kRanks = 250;
  constexpr size_t kWorkers = TrustKeeper::kMostAtOnce * 5 / 2 / kRanks;
  for (size_t i = 0; i < kWorkers; ++i) {
    const auto worker = Join("http://w:" + std::to_string(i));
    for (uint32_t rank = 0; rank < kRanks; ++rank) worker->ranks.Know(rank);
    Report(*worker, false);
  }
  keeper.Tick(now_);
  EXPECT_GE(keeper.AllDoubted().size(), TrustKeeper::kMostAtOnce);
  EXPECT_LT(keeper.AllDoubted().size(), TrustKeeper::kMostAtOnce + kRanks);
  keeper.Tick(now_);
  keeper.Tick(now_);
  EXPECT_EQ(keeper.AllDoubted().size(), kWorkers * kRanks);
}

}  // namespace
}  // namespace fathom
