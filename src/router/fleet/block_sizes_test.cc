#include "router/fleet/block_sizes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace fathom {
namespace {

constexpr TimePoint kNow{std::chrono::seconds(1000)};

class BlockSizesTest : public testing::Test {
 protected:
  void Start(const BlockSizeRules& rules, bool watched = true) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    read_ = ends[0];
    write_ = ends[1];
    log_ = std::make_unique<Log>(write_);
    sizes_ = std::make_unique<BlockSizes>(rules, watched, fleet_, *log_, kNow);
  }
  ~BlockSizesTest() override {
    close(read_);
    close(write_);
  }

  std::shared_ptr<Worker> Join(const std::string& url, uint32_t reports) {
    auto worker = *fleet_.Add({.url = url});
    sizes_->Join(worker, kNow);
    sizes_->Serves(worker->id(), {"m"}, kNow);
    EngineReport report{.engine = EngineKind::kTrtllm, .block_size = reports};
    worker->report.Publish(report, kNow);
    sizes_->Reported(worker->id(), report, kNow);
    fleet_.SetHealthy(worker->id());
    return worker;
  }
  WorkerState StateOf(const Worker& worker) { return fleet_.Current()->Find(worker.id())->state; }
  std::string Metrics() {
    Exposition out;
    sizes_->Collect(*fleet_.Current(), out);
    return out.Text();
  }
  // The log output since the last call.
  std::string Logged() {
    std::string text(1 << 16, '\0');
    log_->Error("end");
    text.resize(static_cast<size_t>(read(read_, text.data(), text.size())));
    return text;
  }

  Fleet fleet_{BreakerOptions{}};
  std::unique_ptr<Log> log_;
  std::unique_ptr<BlockSizes> sizes_;
  int read_ = -1, write_ = -1;
};

TEST_F(BlockSizesTest, AdmitWorkersOnceTheStartIsOver) {
  Start({});
  const auto worker = Join("http://a:1", 32);
  EXPECT_EQ(StateOf(*worker), WorkerState::kProbing);
  EXPECT_TRUE(sizes_->starting());
  EXPECT_FALSE(sizes_->Tick(kNow, false));
  EXPECT_FALSE(sizes_->starting());
  EXPECT_EQ(StateOf(*worker), WorkerState::kReady);
  EXPECT_NE(Logged().find("Auto-configured KV block size to 32 (from worker reports) model=m"),
            std::string::npos);
}

TEST_F(BlockSizesTest, SayWhoDisagreesAndServeNobody) {
  Start({});
  const auto a = Join("http://a:1", 32);
  const auto b = Join("http://b:1", 16);
  sizes_->Tick(kNow, false);
  EXPECT_TRUE(sizes_->refused_to_start());
  EXPECT_EQ(StateOf(*a), WorkerState::kProbing);
  const std::string logged = Logged();
  EXPECT_NE(logged.find("16 tokens  http://b:1 (trtllm, by its own report)"), std::string::npos);
  EXPECT_NE(logged.find("32 tokens  http://a:1 (trtllm, by its own report)"), std::string::npos);
}

TEST_F(BlockSizesTest, ExcludeWhoDisagreesLaterAndCountIt) {
  Start({});
  Join("http://a:1", 32);
  sizes_->Tick(kNow, false);
  const auto late = Join("http://b:1", 16);
  EXPECT_EQ(StateOf(*late), WorkerState::kExcluded);
  const auto standing = sizes_->StandingOf(late->id(), 0);
  EXPECT_EQ(standing.trust.cause, TrustCause::kBlockSizeConflict);
  EXPECT_EQ(standing.words.evidence,
            "blocks of 16 tokens by its own report, 32 in the rest of the fleet");
  EXPECT_NE(standing.words.fix.find("tokens_per_block=32"), std::string::npos);
  EXPECT_NE(Metrics().find("kv_router_block_size_mismatch_total{worker=\"" + late->id_text() +
                           "\",configured=\"32\",reported=\"16\"} 1"),
            std::string::npos);
}

TEST_F(BlockSizesTest, CountMismatchesOfEveryKnownRankFromZero) {
  Start({.configured = 16});
  const auto count = [this](const Worker& worker, uint32_t reported) {
    const std::string series = "kv_router_block_size_mismatch_total{worker=\"" + worker.id_text() +
                               "\",configured=\"16\",reported=\"" + std::to_string(reported) +
                               "\"} ";
    const std::string metrics = Metrics();
    const size_t at = metrics.find(series);
    return at == std::string::npos ? -1 : std::stoi(metrics.substr(at + series.size()));
  };
  const auto same = Join("http://a:1", 16);
  const auto other = Join("http://b:1", 32);
  const auto unknown = Join("http://c:1", 0);
  sizes_->Tick(kNow, false);
  EXPECT_EQ(count(*same, 16), 0);
  EXPECT_EQ(count(*other, 32), 0) << "nothing was stored yet";
  EXPECT_EQ(count(*unknown, 16), 0) << "as configured";
  sizes_->CountMismatch(*other, 32);
  EXPECT_EQ(count(*other, 32), 1);
  EXPECT_EQ(count(*same, 16), 0);
}

TEST_F(BlockSizesTest, PriceARankByLoadWhoseEventsDoNotMatchTheSetting) {
  Start({.configured = 16});
  const auto worker = Join("http://a:1", 0);
  sizes_->Tick(kNow, false);
  Logged();
  EXPECT_FALSE(sizes_->Proven(*worker, 0, 32, kNow));
  EXPECT_TRUE(worker->ranks.only().doubted);
  const std::string logged = Logged();
  EXPECT_NE(logged.find("ERROR Frontend KV block size (16) does not match worker block size (32)."),
            std::string::npos);
  EXPECT_NE(logged.find("url=http://a:1"), std::string::npos);
  sizes_->Reset(*worker, 0, kNow);
  EXPECT_FALSE(worker->ranks.only().doubted);
  EXPECT_TRUE(worker->report.TakeSuspicion()) << "it may be another process";
}

TEST_F(BlockSizesTest, ShowWhereEachSizeIsKnownFrom) {
  Start({});
  const auto worker = Join("http://a:1", 32);
  sizes_->Tick(kNow, false);
  const auto gauge = [&](const std::string& source) {
    return "kv_router_block_size{worker=\"" + worker->id_text() + "\",dp_rank=\"0\",source=\"" +
           source + "\"} 32";
  };
  EXPECT_NE(Metrics().find(gauge("report")), std::string::npos);
  sizes_->Proven(*worker, 0, 32, kNow);
  EXPECT_NE(Metrics().find(gauge("events")), std::string::npos);
  EXPECT_EQ(Metrics().find(gauge("report")), std::string::npos);
}

TEST_F(BlockSizesTest, ConcernNobodyWhereCachesAreNotLookedAt) {
  Start({.configured = 64}, false);
  const auto a = Join("http://a:1", 32);
  const auto b = Join("http://b:1", 16);
  EXPECT_EQ(StateOf(*a), WorkerState::kReady);
  EXPECT_EQ(StateOf(*b), WorkerState::kReady);
  EXPECT_FALSE(sizes_->starting());
  EXPECT_FALSE(sizes_->Tick(kNow, false));
  EXPECT_TRUE(sizes_->Proven(*a, 0, 32, kNow));
  EXPECT_EQ(Logged().find("INFO"), std::string::npos);
}

TEST_F(BlockSizesTest, CanBeToldFromManyThreads) {
  Start({});
  const auto a = Join("http://a:1", 32);
  sizes_->Tick(kNow, false);
  Logged();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 200; ++n) {
        if (i == 0) sizes_->Proven(*a, 0, 32, kNow);
        if (i == 1 && n % 50 == 0) sizes_->Reset(*a, 0, kNow);
        if (i == 2) sizes_->CountMismatch(*a, 16);
        if (i == 3) {
          EXPECT_FALSE(Metrics().empty());
        }
      }
    });
  }
  threads.clear();
  EXPECT_NE(Metrics().find("reported=\"16\"} 200"), std::string::npos);
}

TEST_F(BlockSizesTest, DoNotMatterOfAWorkerThatIsSetAside) {
  Start({});
  const auto a = Join("http://a:1", 32);
  const auto b = Join("http://b:1", 16);
  const auto silent = *fleet_.Add({.url = "http://c:1"});
  sizes_->Join(silent, kNow);
  sizes_->SetAside(*b, kNow);
  sizes_->SetAside(*silent, kNow);
  EXPECT_TRUE(sizes_->Awaited().empty());
  EXPECT_FALSE(sizes_->Tick(kNow, false));
  EXPECT_FALSE(sizes_->refused_to_start());
  EXPECT_EQ(StateOf(*a), WorkerState::kReady);
}

TEST_F(BlockSizesTest, AreAskedForAgainWhenAWorkerIsTakenUp) {
  Start({});
  const auto a = Join("http://a:1", 32);
  const auto b = Join("http://b:1", 32);
  sizes_->SetAside(*b, kNow);
  sizes_->Tick(kNow, false);
  sizes_->TakeUp(*b, kNow);
  sizes_->Serves(b->id(), {"m"}, kNow);
  EXPECT_EQ(StateOf(*b), WorkerState::kProbing);
  sizes_->Answered(b->id(), kNow);
  sizes_->Reported(b->id(), {.engine = EngineKind::kTrtllm, .block_size = 16}, kNow);
  EXPECT_EQ(StateOf(*b), WorkerState::kExcluded);
}

// The prober may still be at work when a worker leaves.
TEST_F(BlockSizesTest, DoNotTakeUpAWorkerThatHasLeft) {
  Start({});
  const auto a = Join("http://a:1", 32);
  const auto b = Join("http://b:1", 32);
  sizes_->SetAside(*b, kNow);
  sizes_->Leave(b->id(), kNow);
  sizes_->TakeUp(*b, kNow);
  EXPECT_TRUE(sizes_->Awaited().empty());
}

}  // namespace
}  // namespace fathom
