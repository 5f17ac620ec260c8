#include "router/fleet/worker_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "testing/exposition_reader.h"

namespace fathom {
namespace {

using ::testing::Optional;

EngineReport TwoRanks() {
  EngineReport report{.engine = EngineKind::kVllm, .ranks = 2, .block_size = 16};
  report.kv_tokens = 4096;
  report.loads = {{.rank = 0, .running = 3, .waiting = 1, .cache_usage = 0.5},
                  {.rank = 2, .running = 4, .waiting = 0, .cache_usage = 0.25}};
  return report;
}

TEST(CollectLoads, WritesThreeGaugesPerRank) {
  Exposition out;
  CollectLoads(TwoRanks(), "77", out);
  const ExpositionReader page(out.Text());
  EXPECT_EQ(page.problem(), "");
  EXPECT_EQ(page.size(), 6u);
  EXPECT_THAT(page.Value(R"(kv_router_engine_running{worker="77",dp_rank="0"})"), Optional(3));
  EXPECT_THAT(page.Value(R"(kv_router_engine_waiting{worker="77",dp_rank="0"})"), Optional(1));
  EXPECT_THAT(page.Value(R"(kv_router_engine_cache_usage{worker="77",dp_rank="2"})"),
              Optional(0.25));
}

TEST(WorkerReport, KnowsNothingBeforeTheFirstReport) {
  const WorkerReport board;
  EXPECT_EQ(board.Current(), nullptr);
  EXPECT_EQ(board.published(), std::nullopt);
  EXPECT_EQ(board.engine(), EngineKind::kUnknown);
  EXPECT_EQ(board.kv_tokens(), 0u);
  EXPECT_EQ(board.max_running(), 0u);
  EXPECT_EQ(board.batch_tokens(), 0u);
  EXPECT_EQ(board.prefix_caching(), std::nullopt);
}

TEST(WorkerReport, ShowsTheLatestReportAndLeavesOlderOnesToTheirReaders) {
  WorkerReport board;
  EngineReport first{.kv_tokens = 1000, .max_running = 8, .batch_tokens = 512};
  first.prefix_caching = false;
  board.Publish(first, TimePoint(Duration(5)));
  const auto kept = board.Current();
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(board.kv_tokens(), 1000u);
  EXPECT_EQ(board.max_running(), 8u);
  EXPECT_EQ(board.batch_tokens(), 512u);
  EXPECT_THAT(board.prefix_caching(), Optional(false));
  EXPECT_THAT(board.published(), Optional(TimePoint(Duration(5))));

  board.Publish(TwoRanks(), TimePoint(Duration(9)));
  EXPECT_EQ(*kept, first);
  EXPECT_EQ(*board.Current(), TwoRanks());
  EXPECT_EQ(board.engine(), EngineKind::kVllm);
  EXPECT_EQ(board.kv_tokens(), 4096u);
  EXPECT_EQ(board.max_running(), 0u);
  EXPECT_EQ(board.prefix_caching(), std::nullopt);
  EXPECT_THAT(board.published(), Optional(TimePoint(Duration(9))));
}

TEST(WorkerReport, KnowsNothingOnceItForgets) {
  WorkerReport board;
  EngineReport report = TwoRanks();
  report.prefix_caching = false;
  board.Publish(report, TimePoint(Duration(5)));
  board.Forget();
  EXPECT_EQ(board.Current(), nullptr);
  EXPECT_EQ(board.published(), std::nullopt);
  EXPECT_EQ(board.engine(), EngineKind::kUnknown);
  EXPECT_EQ(board.kv_tokens(), 0u);
  EXPECT_EQ(board.prefix_caching(), std::nullopt);
}

TEST(WorkerReport, IsSuspectedUntilSomebodyTakesTheSuspicion) {
  WorkerReport board;
  EXPECT_FALSE(board.TakeSuspicion());
  board.Suspect();
  board.Suspect();
  board.Publish(TwoRanks(), TimePoint(Duration(5)));
  EXPECT_TRUE(board.TakeSuspicion()) << "what was asked for earlier may be of the other process";
  EXPECT_FALSE(board.TakeSuspicion());
}

// For the thread sanitizer, and to detect torn reads.
TEST(WorkerReport, IsReadWholeWhileAnotherThreadPublishes) {
  constexpr uint32_t kReports = 300;
  WorkerReport board;
  std::thread writer([&] {
    for (uint32_t i = 1; i <= kReports; ++i) {
      EngineReport report{.block_size = i, .kv_tokens = i, .max_running = i};
      report.loads.assign(3, {.running = i});
      board.Publish(std::move(report), TimePoint(Duration(i)));
    }
  });
  uint64_t seen = 0;
  while (seen < kReports) {
    std::this_thread::yield();
    EXPECT_LE(board.kv_tokens(), kReports);
    const auto report = board.Current();
    if (report == nullptr) continue;
    EXPECT_GE(report->kv_tokens, seen);
    EXPECT_EQ(report->block_size, report->kv_tokens);
    for (const RankLoadReport& load : report->loads) EXPECT_EQ(load.running, report->kv_tokens);
    seen = report->kv_tokens;
  }
  writer.join();
}

}  // namespace
}  // namespace fathom
