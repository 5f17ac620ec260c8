#include "engine/engine_report.h"

#include <gtest/gtest.h>

#include <limits>

namespace fathom {
namespace {

EngineReport TwoRanks() {
  EngineReport report{.engine = EngineKind::kVllm, .ranks = 2, .block_size = 16};
  report.kv_tokens = 4096;
  report.loads = {{.rank = 0, .running = 3, .waiting = 1, .cache_usage = 0.5},
                  {.rank = 2, .running = 4, .waiting = 0, .cache_usage = 0.25}};
  return report;
}

TEST(EngineReport, AddsUpRequestsOverRanksAndAveragesTheUsage) {
  const auto total = TwoRanks().TotalLoad();
  ASSERT_TRUE(total);
  EXPECT_EQ(total->running, 7u);
  EXPECT_EQ(total->waiting, 1u);
  EXPECT_DOUBLE_EQ(total->cache_usage, 0.375);
  EXPECT_EQ(EngineReport().TotalLoad(), std::nullopt);
}

TEST(EngineReport, TotalDoesNotOverflowWhateverEnginesClaim) {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  EngineReport report;
  report.loads = {{.rank = 0, .running = kMost, .waiting = 1},
                  {.rank = 1, .running = kMost, .waiting = kMost - 1}};
  EXPECT_EQ(report.TotalLoad()->running, kMost);
  EXPECT_EQ(report.TotalLoad()->waiting, kMost);
}

TEST(EngineReport, EventsHaveTheBlocksOfAllWhoShareAContext) {
  EXPECT_EQ((EngineReport{.block_size = 16, .context_parallel = 4}.event_block_size()), 64u);
  EXPECT_EQ((EngineReport{.block_size = 16, .context_parallel = 1}.event_block_size()), 16u);
  EXPECT_EQ((EngineReport{.block_size = 16}.event_block_size()), 16u) << "not said";
  EXPECT_EQ((EngineReport{.context_parallel = 4}.event_block_size()), 0u);
}

TEST(EngineReport, NamesEnginesAsTheMockDoes) {
  EXPECT_EQ(Name(EngineKind::kUnknown), "unknown");
  EXPECT_EQ(Name(EngineKind::kVllm), "vllm");
  EXPECT_EQ(Name(EngineKind::kSglang), "sglang");
  EXPECT_EQ(Name(EngineKind::kTrtllm), "trtllm");
}

}  // namespace
}  // namespace fathom
